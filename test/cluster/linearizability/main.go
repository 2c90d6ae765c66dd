// Judges a history of operations on keys: reads one JSON object a line from standard input and prints `ok`, or `illegal`
// and the keys whose histories no single copy could have given. The judge is porcupine.
//
//	{"client":3,"key":"r1","op":"set","value":"7","call":120,"return":340}
//	{"client":3,"key":"r1","op":"get","result":"7","call":…,"return":…}
//	{"client":3,"key":"r1","op":"cas","expected":"7","value":"8","result":"1",…}   "" when it did not apply
//	{"client":3,"key":"l1","op":"append","value":"7",…}   result: the new length
//	{"client":3,"key":"l1","op":"list","result":"5,6,7",…}
//	{"client":3,"key":"s1","op":"add","value":"7","result":"1",…}
//	{"client":3,"key":"s1","op":"members","result":"5,6,7",…}   in ascending order
//
// Times are nanoseconds of one clock. An operation whose outcome is unknown has no "return": it may have taken effect at
// any time after its call, or never; a read of unknown outcome is left out. No two operations on a key write the same
// value, and members are numbers.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
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

// The state of a key is its value, or its elements with commas between them; the output of an operation is its result. An
// append without a result has an unknown one.
var model = porcupine.Model{
	Init: func() interface{} { return "" },
	Step: func(state, input, out interface{}) (bool, interface{}) {
		now := state.(string)
		in := input.(operation)
		result := out.(string)
		switch in.Op {
		case "get", "list", "members":
			return result == now, now
		case "set":
			return true, in.Value
		case "cas":
			applies := now == in.Expected
			if applies {
				now = in.Value
			}
			return applies == (result == "1"), now
		case "append":
			next := in.Value
			if now != "" {
				next = now + "," + in.Value
			}
			length := strconv.Itoa(strings.Count(next, ",") + 1)
			return result == "" || result == length, next
		case "add":
			return result != "0", withMember(now, in.Value)
		}
		panic("no operation is called " + in.Op)
	},
}

// The members with one more, in ascending order.
func withMember(members, value string) string {
	if members == "" {
		return value
	}
	all := append(strings.Split(members, ","), value)
	sort.Slice(all, func(a, b int) bool { return number(all[a]) < number(all[b]) })
	return strings.Join(all, ",")
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	byKey := map[string][]operation{}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<20), 1<<28)
	for lines.Scan() {
		var one operation
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		byKey[one.Key] = append(byKey[one.Key], one)
	}
	var illegal, undecided []string
	for key, history := range byKey {
		switch porcupine.CheckOperationsTimeout(model, intervals(history), 2*time.Minute) {
		case porcupine.Illegal:
			illegal = append(illegal, key)
		case porcupine.Unknown:
			undecided = append(undecided, key)
		}
	}
	sort.Strings(illegal)
	sort.Strings(undecided)
	switch {
	case len(illegal) > 0:
		fmt.Println("illegal", strings.Join(illegal, " "))
		os.Exit(1)
	case len(undecided) > 0:
		fmt.Println("undecided", strings.Join(undecided, " "))
		os.Exit(1)
	}
	fmt.Println("ok")
}
