// What people write with go-redis, as a tenant that wants more than its quota. Arguments: port, user (its password is
// the same). Prints one JSON line of what came of it; ends with an error where go-redis gave up or mixed up answers.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

type result struct {
	// Single commands that were served, and that failed for good.
	Served int64 `json:"served"`
	Failed int64 `json:"failed"`
	// Commands of pipelines that were refused at first, and rounds until all were served.
	Refused int `json:"refused"`
	Rounds  int `json:"rounds"`
	// Transactions tried until they were let in.
	Transactions int `json:"transactions"`
	// Connections opened in all.
	Connects int64 `json:"connects"`
}

func main() {
	ctx := context.Background()
	var out result
	var connects atomic.Int64
	client := redis.NewClient(&redis.Options{
		Addr:     net.JoinHostPort("127.0.0.1", os.Args[1]),
		Username: os.Args[2],
		Password: os.Args[2],
		PoolSize: 16,
		OnConnect: func(context.Context, *redis.Conn) error {
			connects.Add(1)
			return nil
		},
	})
	defer client.Close()

	singles(ctx, client, &out)
	pipelines(ctx, client, &out)
	transactions(ctx, client, &out)
	out.Connects = connects.Load()
	line, err := json.Marshal(out)
	check(err)
	fmt.Println(string(line))
}

func singles(ctx context.Context, client *redis.Client, out *result) {
	var group sync.WaitGroup
	for g := 0; g < 16; g++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := 0; i < 100; i++ {
				if err := client.Incr(ctx, fmt.Sprintf("single%d", g)).Err(); err != nil {
					atomic.AddInt64(&out.Failed, 1)
				} else {
					atomic.AddInt64(&out.Served, 1)
				}
			}
		}()
	}
	group.Wait()
	for g := 0; g < 16; g++ {
		n, err := client.Get(ctx, fmt.Sprintf("single%d", g)).Int()
		check(err)
		if n != 100 {
			check(fmt.Errorf("single%d is %d", g, n))
		}
	}
}

// A pipeline of which a part is refused: that part is sent again until all is done.
func pipelines(ctx context.Context, client *redis.Client, out *result) {
	const total = 5000
	left := make([]int, total)
	for i := range left {
		left[i] = i
	}
	for len(left) > 0 {
		out.Rounds++
		pipe := client.Pipeline()
		for _, n := range left {
			pipe.SetArgs(ctx, fmt.Sprintf("p%d", n), n, redis.SetArgs{})
			pipe.Echo(ctx, n)
		}
		answers, _ := pipe.Exec(ctx)
		var refused []int
		for i, n := range left {
			echoed, err := answers[2*i+1].(*redis.StringCmd).Result()
			check(err)
			if echoed != fmt.Sprint(n) {
				check(fmt.Errorf("answer %s to %d", echoed, n))
			}
			err = answers[2*i].Err()
			switch {
			case err == nil:
			case isRefusal(err):
				refused = append(refused, n)
			default:
				check(err)
			}
		}
		out.Refused += len(refused)
		left = refused
		if out.Rounds > 100 {
			check(errors.New("a pipeline without end"))
		}
		if len(left) > 0 {
			time.Sleep(200 * time.Millisecond)
		}
	}
	check(client.Del(ctx, "p0").Err())
}

func transactions(ctx context.Context, client *redis.Client, out *result) {
	for i := 1; i <= 20; {
		out.Transactions++
		var count *redis.IntCmd
		_, err := client.TxPipelined(ctx, func(tx redis.Pipeliner) error {
			for n := 0; n < 20; n++ {
				tx.Set(ctx, fmt.Sprintf("t%d", n), i, 0)
			}
			count = tx.Incr(ctx, "transactions")
			return nil
		})
		if err != nil && isRefusal(err) {
			time.Sleep(200 * time.Millisecond)
			continue
		}
		check(err)
		if count.Val() != int64(i) {
			check(fmt.Errorf("transaction %d is number %d", i, count.Val()))
		}
		i++
	}
}

func isRefusal(err error) bool {
	return strings.HasPrefix(err.Error(), "TRYAGAIN RU limit: tenant="+os.Args[2]+" ")
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
