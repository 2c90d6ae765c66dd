// Judges a history of operations on keys: reads one JSON object a line from standard input and prints `ok`, or `illegal`
// and the key whose history no single copy could have given. The judge is porcupine.
//
//	{"client":3,"key":"r1","op":"set","value":"7","call":120,"return":340}
//	{"client":3,"key":"r1","op":"get","result":"7","call":…,"return":…}
//	{"client":3,"key":"r1","op":"cas","expected":"7","value":"8","result":"1",…}   "" when it did not apply
//	{"client":3,"key":"l1","op":"append","value":"7",…}   result: the new length
//	{"client":3,"key":"l1","op":"list","result":"5,6,7",…}
//
// Times are nanoseconds of one clock. An operation whose outcome is unknown has no "return": it may have taken effect at
// any time after its call, or never.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

type operation struct {
	Client   int    `json:"client"`
	Key      string `json:"key"`
	Op       string `json:"op"`
	Value    string `json:"value"`
	Expected string `json:"expected"`
	Result   string `json:"result"`
	Call     int64  `json:"call"`
	Return   *int64 `json:"return"`
}

type output struct {
	result  string
	unknown bool
}

// The state of a key is its value, or its elements with commas between them.
var model = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, one := range history {
			key := one.Input.(operation).Key
			byKey[key] = append(byKey[key], one)
		}
		var parts [][]porcupine.Operation
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() interface{} { return "" },
	Step: func(state, input, out interface{}) (bool, interface{}) {
		now := state.(string)
		in := input.(operation)
		seen := out.(output)
		switch in.Op {
		case "get", "list":
			return seen.unknown || seen.result == now, now
		case "set":
			return true, in.Value
		case "cas":
			applies := now == in.Expected
			if !seen.unknown && applies != (seen.result == "1") {
				return false, now
			}
			if applies {
				return true, in.Value
			}
			return true, now
		case "append":
			next := in.Value
			if now != "" {
				next = now + "," + in.Value
			}
			length := strconv.Itoa(strings.Count(next, ",") + 1)
			return seen.unknown || seen.result == length, next
		}
		panic("no operation is called " + in.Op)
	},
}

func main() {
	var history []porcupine.Operation
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<20), 1<<28)
	for lines.Scan() {
		var one operation
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		end, unknown := int64(math.MaxInt64), true
		if one.Return != nil {
			end, unknown = *one.Return, false
		}
		history = append(history, porcupine.Operation{
			ClientId: one.Client, Input: one, Call: one.Call,
			Output: output{one.Result, unknown}, Return: end,
		})
	}
	for _, part := range model.Partition(history) {
		switch porcupine.CheckOperationsTimeout(model, part, 2*time.Minute) {
		case porcupine.Illegal:
			fmt.Println("illegal", part[0].Input.(operation).Key)
			os.Exit(1)
		case porcupine.Unknown:
			fmt.Println("undecided", part[0].Input.(operation).Key)
			os.Exit(1)
		}
	}
	fmt.Println("ok")
}
