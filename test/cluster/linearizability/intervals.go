package main

import (
	"math"
	"strings"

	"github.com/anishathalye/porcupine"
)

// The operations of one key as porcupine takes them. An operation of unknown outcome is open for ever, and the search
// doubles with each one that is open. What others saw of it narrows it, without changing the verdict:
//
//   - A value that was seen was written before whoever saw it first had returned.
//   - A value that nobody saw may as well never have been written, as nothing tells it from one that was written after
//     all others. For elements of lists that needs a list that was asked for when all appends had returned, as a length
//     counts what it does not show.
func intervals(history []operation) []porcupine.Operation {
	seen := firstSeen(history)
	lastList, lastAppend := int64(math.MinInt64), int64(math.MinInt64)
	for _, one := range history {
		if one.Op == "list" {
			lastList = max(lastList, one.Call)
		} else if one.Op == "append" && one.Return != nil {
			lastAppend = max(lastAppend, *one.Return)
		}
	}
	var all []porcupine.Operation
	for _, one := range history {
		result := one.Result
		end := int64(math.MaxInt64)
		if one.Return != nil {
			end = *one.Return
		} else if at, wasSeen := seen[one.Value]; wasSeen {
			end = max(at, one.Call)
			if one.Op == "cas" {
				result = "1"
			}
		} else if one.Op != "append" || lastAppend < lastList {
			continue
		}
		all = append(all, porcupine.Operation{
			ClientId: one.Client, Input: one, Call: one.Call, Output: result, Return: end,
		})
	}
	return all
}

// For each value that was seen: by when it must have been written.
func firstSeen(history []operation) map[string]int64 {
	seen := map[string]int64{}
	note := func(value string, at int64) {
		if before, known := seen[value]; !known || at < before {
			seen[value] = at
		}
	}
	for _, one := range history {
		switch {
		case one.Return == nil:
		case one.Op == "get":
			note(one.Result, *one.Return)
		case one.Op == "list" || one.Op == "members":
			for _, value := range strings.Split(one.Result, ",") {
				note(value, *one.Return)
			}
		case one.Op == "cas" && one.Result == "1":
			note(one.Expected, *one.Return)
		}
	}
	// What a compare-and-set of unknown outcome expected was there, if its own value was seen.
	for hasMore := true; hasMore; {
		hasMore = false
		for _, one := range history {
			at, applied := seen[one.Value]
			if one.Return != nil || one.Op != "cas" || !applied {
				continue
			}
			if before, known := seen[one.Expected]; !known || at < before {
				note(one.Expected, at)
				hasMore = true
			}
		}
	}
	return seen
}
