// go-redis appends numbers to a list until its input ends. Words: plain or cluster, ports, key.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

type result struct {
	Written      int            `json:"written"`
	Refused      []int          `json:"refused"`
	Errors       map[string]int `json:"errors"`
	LongestGapMs float64        `json:"longestGapMs"`
}

func main() {
	var addresses []string
	for _, port := range strings.Split(os.Args[2], ",") {
		addresses = append(addresses, "127.0.0.1:"+port)
	}
	options := &redis.UniversalOptions{
		Addrs:           addresses,
		MaxRetries:      20,
		MaxRedirects:    20,
		MinRetryBackoff: 50 * time.Millisecond,
		MaxRetryBackoff: time.Second,
	}
	var client redis.UniversalClient
	if os.Args[1] == "cluster" {
		client = redis.NewClusterClient(options.Cluster())
	} else {
		options.Addrs = addresses[:1]
		client = redis.NewClient(options.Simple())
	}
	defer client.Close()

	over := make(chan struct{})
	go func() {
		_, _ = io.ReadAll(os.Stdin)
		close(over)
	}()
	line, err := json.Marshal(write(client, os.Args[3], over))
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}

func write(client redis.UniversalClient, key string, over <-chan struct{}) result {
	out := result{Refused: []int{}, Errors: map[string]int{}}
	last := time.Now()
	for n := 0; ; n++ {
		select {
		case <-over:
			return out
		default:
		}
		out.Written++
		if err := client.RPush(context.Background(), key, n).Err(); err != nil {
			out.Errors[err.Error()]++
			out.Refused = append(out.Refused, n)
			time.Sleep(20 * time.Millisecond)
			continue
		}
		gap := time.Since(last).Seconds() * 1000
		out.LongestGapMs = max(out.LongestGapMs, gap)
		last = time.Now()
	}
}
