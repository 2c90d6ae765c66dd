package main

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"unsafe"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/quorum"
	"go.etcd.io/raft/v3/tracker"
)

// Out: id, term, vote, commit, applied, lead, last index, first index, pending append and apply work, all u64 |
// role u32
//
//go:wasmexport status
func status(h uint32) int32 {
	return with(h, func(g *group) int32 {
		s := g.node.BasicStatus()
		first, _ := g.storage.FirstIndex()
		last, _ := g.storage.LastIndex()
		b := begin()
		for _, v := range [...]uint64{
			s.ID, s.GetTerm(), s.GetVote(), s.GetCommit(), s.Applied, s.Lead, last, first,
			uint64(len(g.appends)), uint64(len(g.applies)),
		} {
			b = put64(b, v)
		}
		return answer(put32(b, uint32(s.RaftState)))
	})
}

// Out: configuration | (id u64 | state u32 | flags u32: 1 learner, 2 paused, 4 recently active, 8 inflight full
// | match u64 | next u64 | pending snapshot u64 | inflight messages u32)*. Only a leader knows of the others.
//
//go:wasmexport progress
func progress(h uint32) int32 {
	return with(h, func(g *group) int32 {
		s := g.node.Status()
		b := putIDSet(begin(), s.Config.Voters[0])
		b = putIDSet(b, s.Config.Learners)
		b = putIDSet(b, s.Config.Voters[1])
		b = putIDSet(b, s.Config.LearnersNext)
		b = putBool(b, s.Config.AutoLeave)
		ids := make([]uint64, 0, len(s.Progress))
		for id := range s.Progress {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		b = put32(b, uint32(len(ids)))
		for _, id := range ids {
			b = putProgress(b, id, s.Progress[id])
		}
		return answer(b)
	})
}

func putIDSet(b []byte, set quorum.MajorityConfig) []byte {
	ids := make([]uint64, 0, len(set))
	for id := range set {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return putIDs(b, ids)
}

func putProgress(b []byte, id uint64, p tracker.Progress) []byte {
	f := uint32(0)
	for i, on := range [...]bool{p.IsLearner, p.IsPaused(), p.RecentActive, p.Inflights.Full()} {
		if on {
			f |= 1 << i
		}
	}
	b = put32(put32(put64(b, id), uint32(p.State)), f)
	b = put64(put64(put64(b, p.Match), p.Next), p.PendingSnapshot)
	return put32(b, uint32(p.Inflights.Count()))
}

// Out: the entries that are stored, or the first `maxBytes` of them.
//
//go:wasmexport entries
func entries(h uint32, from float64, maxBytes uint32) int32 {
	return with(h, func(g *group) int32 {
		last, _ := g.storage.LastIndex()
		first, _ := g.storage.FirstIndex()
		first = max(first, uint64(from))
		if first > last {
			return answer(putEntries(begin(), nil))
		}
		size := uint64(maxBytes)
		if size == 0 {
			size = math.MaxUint64
		}
		list, err := g.storage.Entries(first, last+1, size)
		if err != nil {
			return result(err)
		}
		return answer(putEntries(begin(), list))
	})
}

// Out: heap bytes, bytes had from the host, collections, pause nanoseconds, all u64
//
//go:wasmexport memory_stats
func memoryStats() int32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b := put64(put64(begin(), m.HeapAlloc), m.Sys)
	return answer(put64(put64(b, uint64(m.NumGC)), m.PauseTotalNs))
}

type logger struct{}

func say(level uint32, text string) {
	hostLog(level, unsafe.Pointer(unsafe.StringData(text)), uint32(len(text)))
}

func (logger) Debug(v ...any)            {}
func (logger) Debugf(f string, v ...any) {}

func (logger) Info(v ...any) {
	if verbose {
		say(1, fmt.Sprint(v...))
	}
}

func (logger) Infof(f string, v ...any) {
	if verbose {
		say(1, fmt.Sprintf(f, v...))
	}
}

func (logger) Warning(v ...any) {
	if verbose {
		say(2, fmt.Sprint(v...))
	}
}

func (logger) Warningf(f string, v ...any) {
	if verbose {
		say(2, fmt.Sprintf(f, v...))
	}
}

func (logger) Error(v ...any)            { say(3, fmt.Sprint(v...)) }
func (logger) Errorf(f string, v ...any) { say(3, fmt.Sprintf(f, v...)) }
func (logger) Fatal(v ...any)            { panic(fmt.Sprint(v...)) }
func (logger) Fatalf(f string, v ...any) { panic(fmt.Sprintf(f, v...)) }
func (logger) Panic(v ...any)            { panic(fmt.Sprint(v...)) }
func (logger) Panicf(f string, v ...any) { panic(fmt.Sprintf(f, v...)) }

var _ raft.Logger = logger{}
