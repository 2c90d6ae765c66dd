// Runs YCSB's core workload, as go-ycsb implements it, against a Redis-protocol server. go-ycsb's own
// Redis binding cannot scan; the one in redis.go sends what the Java binding sends.
//
//	ycsb-driver load|run name=value ...
//
// takes YCSB's properties (threadcount, recordcount, operationcount, readproportion ...) and redis.host
// and redis.port, and prints the lines of the Java YCSB that bench/ycsb.ts reads.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/magiconair/properties"
	"github.com/pingcap/go-ycsb/pkg/client"
	"github.com/pingcap/go-ycsb/pkg/measurement"
	"github.com/pingcap/go-ycsb/pkg/prop"
	_ "github.com/pingcap/go-ycsb/pkg/workload"
	"github.com/pingcap/go-ycsb/pkg/ycsb"
)

func main() {
	if len(os.Args) < 2 || (os.Args[1] != "load" && os.Args[1] != "run") {
		fail("usage: ycsb-driver load|run name=value ...")
	}
	p, err := parseProperties(os.Args[1] == "run", os.Args[2:])
	check(err)
	results, err := os.CreateTemp("", "ycsb-driver-*.json")
	check(err)
	results.Close()
	defer os.Remove(results.Name())
	set(p, prop.MeasurementRawOutputFile, results.Name())
	set(p, "outputstyle", "json")

	measurement.InitMeasure(p)
	workload, err := ycsb.GetWorkloadCreator("core").Create(p)
	check(err)
	db, err := newRedisDB(p)
	check(err)
	startedAt := time.Now()
	client.NewClient(p, workload, client.DbWrapper{DB: db}).Run(context.Background())
	elapsed := time.Since(startedAt)
	measurement.Output()
	check(report(results.Name(), operations(p), elapsed))
}

func parseProperties(transactions bool, words []string) (*properties.Properties, error) {
	p := properties.NewProperties()
	for _, word := range words {
		name, value, found := strings.Cut(word, "=")
		if !found {
			return nil, fmt.Errorf("%q is not name=value", word)
		}
		set(p, name, value)
	}
	set(p, prop.DoTransactions, fmt.Sprint(transactions))
	if transactions {
		// go-ycsb's zipfian keys reach one too far, to a record that was never loaded.
		set(p, prop.InsertCount, fmt.Sprint(p.GetInt64(prop.RecordCount, 0)-1))
	}
	// Longer than any run: summaries on the way would take the lock that measuring needs.
	set(p, prop.LogInterval, "86400")
	return p, nil
}

func operations(p *properties.Properties) int64 {
	if p.GetBool(prop.DoTransactions, true) {
		return p.GetInt64(prop.OperationCount, 0)
	}
	return p.GetInt64(prop.RecordCount, 0)
}

// report prints go-ycsb's measurements in the form of the Java YCSB.
func report(path string, operations int64, elapsed time.Duration) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var lines []map[string]string
	if err := json.Unmarshal(text, &lines); err != nil {
		return fmt.Errorf("no measurements: %w", err)
	}
	fmt.Printf("[OVERALL], RunTime(ms), %d\n", elapsed.Milliseconds())
	fmt.Printf("[OVERALL], Throughput(ops/sec), %f\n", float64(operations)/elapsed.Seconds())
	for _, line := range lines {
		name := strings.ReplaceAll(line["Operation"], "_", "-")
		if name == "TOTAL" {
			continue
		}
		if operation := strings.TrimSuffix(name, "-ERROR"); operation != name {
			fmt.Printf("[%s], Return=ERROR, %s\n", operation, line["Count"])
			continue
		}
		fmt.Printf("[%s], Operations, %s\n", name, line["Count"])
		fmt.Printf("[%s], AverageLatency(us), %s\n", name, line["Avg(us)"])
		fmt.Printf("[%s], 50thPercentileLatency(us), %s\n", name, line["50th(us)"])
		fmt.Printf("[%s], 95thPercentileLatency(us), %s\n", name, line["95th(us)"])
		fmt.Printf("[%s], 99thPercentileLatency(us), %s\n", name, line["99th(us)"])
		fmt.Printf("[%s], Return=OK, %s\n", name, line["Count"])
	}
	return nil
}

func set(p *properties.Properties, name, value string) {
	_, _, err := p.Set(name, value)
	check(err)
}

func check(err error) {
	if err != nil {
		fail(err.Error())
	}
}

func fail(message string) {
	fmt.Fprintln(os.Stderr, "ycsb-driver: "+message)
	os.Exit(1)
}
