// Puts values of random keys as fast as so many clients can, each on a connection of its own with one put at a time, and
// prints what came of it as JSON: puts, seconds, latencies in milliseconds, and the processor seconds of this program,
// which are the client's cost.
//
//	put-load -kind etcd|redis -addresses HOST:PORT,… -clients 64 -bytes 100 -seconds 10
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math/rand"
	"net"
	"os"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const keys = 10000

type putter func(key, value string) error

func etcdPutter(address string) (putter, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, DialTimeout: 10 * time.Second})
	if err != nil {
		return nil, err
	}
	return func(key, value string) error {
		_, err := client.Put(context.Background(), key, value)
		return err
	}, nil
}

func redisPutter(address string) (putter, error) {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	answers := bufio.NewReader(connection)
	return func(key, value string) error {
		_, err := fmt.Fprintf(connection, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(key), key, len(value), value)
		if err != nil {
			return err
		}
		line, err := answers.ReadString('\n')
		if err == nil && line != "+OK\r\n" {
			return fmt.Errorf("SET was answered %q", line)
		}
		return err
	}, nil
}

func main() {
	kind := flag.String("kind", "redis", "etcd or redis")
	addresses := flag.String("addresses", "", "where the clients connect, in turn")
	clients := flag.Int("clients", 64, "connections")
	bytes := flag.Int("bytes", 100, "size of values")
	seconds := flag.Float64("seconds", 10, "for so long")
	flag.Parse()
	dial := redisPutter
	if *kind == "etcd" {
		dial = etcdPutter
	}
	where := strings.Split(*addresses, ",")
	putters := make([]putter, *clients)
	for i := range putters {
		var err error
		if putters[i], err = dial(where[i%len(where)]); err != nil {
			log.Fatal(err)
		}
	}
	value := strings.Repeat("x", *bytes)
	begin := time.Now()
	end := begin.Add(time.Duration(*seconds * float64(time.Second)))
	latencies := make([][]float64, *clients)
	var all sync.WaitGroup
	for i, put := range putters {
		all.Add(1)
		go func(i int, put putter) {
			defer all.Done()
			random := rand.New(rand.NewSource(int64(i)))
			for now := time.Now(); now.Before(end); {
				if err := put(fmt.Sprintf("key:%06d", random.Intn(keys)), value); err != nil {
					log.Fatal(err)
				}
				then := now
				now = time.Now()
				latencies[i] = append(latencies[i], float64(now.Sub(then).Microseconds())/1000)
			}
		}(i, put)
	}
	all.Wait()
	elapsed := time.Since(begin).Seconds()
	var sorted []float64
	for _, some := range latencies {
		sorted = append(sorted, some...)
	}
	sort.Float64s(sorted)
	at := func(share float64) float64 { return sorted[int(share*float64(len(sorted)-1))] }
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	seconds64 := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	if err := json.NewEncoder(os.Stdout).Encode(map[string]float64{
		"puts": float64(len(sorted)), "seconds": elapsed, "p50": at(0.5), "p99": at(0.99),
		"clientCpuSeconds": seconds64(usage.Utime) + seconds64(usage.Stime),
	}); err != nil {
		log.Fatal(err)
	}
}
