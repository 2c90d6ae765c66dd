// etcd's raft behind a flat WebAssembly boundary: many groups in one instance. The host writes its input where
// `in_buffer` says, calls, and finds the output where `out_buffer` says until the next call. A result below zero
// is an error, and its text is in `last_error`.
package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"unsafe"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

//go:wasmimport host log
func hostLog(level uint32, text unsafe.Pointer, n uint32)

const keptBytes = 1 << 20

var (
	in      = make([]byte, 1<<16)
	out     = make([]byte, 0, 1<<16)
	lastErr string
	verbose bool
)

func main() {}

func init() { raft.SetLogger(logger{}) }

//go:wasmexport in_buffer
func inBuffer(n uint32) unsafe.Pointer {
	if int(n) > len(in) || len(in) > keptBytes {
		in = make([]byte, max(int(n), 1<<16))
	}
	return unsafe.Pointer(unsafe.SliceData(in))
}

//go:wasmexport out_buffer
func outBuffer() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(out)) }

//go:wasmexport last_error
func lastError() int32 { return answer(append(begin(), lastErr...)) }

// What the library keeps of the input must not change with the next one.
func input(n uint32) *reader {
	if int(n) > len(in) {
		return &reader{failed: true}
	}
	return &reader{b: append([]byte(nil), in[:n]...)}
}

// A buffer that was grown for one large answer is not kept for ever.
func begin() []byte {
	if cap(out) > keptBytes {
		out = make([]byte, 0, 1<<16)
	}
	return out[:0]
}

func answer(b []byte) int32 {
	out = b
	return int32(len(b))
}

func malformed() int32 {
	lastErr = "malformed input"
	return resultBad
}

//go:wasmexport group_create
func groupCreate(n uint32) int32 { return createGroup(input(n)) }

//go:wasmexport group_destroy
func groupDestroy(h uint32) int32 {
	g := lookup(h)
	if g == nil {
		lastErr = "no such group"
		return resultBad
	}
	destroyGroup(g)
	return 0
}

//go:wasmexport set_asleep
func setAsleep(h, on uint32) int32 {
	return with(h, func(g *group) int32 { g.asleep = on != 0; return 0 })
}

//go:wasmexport tick
func tick(h uint32) int32 { return with(h, func(g *group) int32 { g.node.Tick(); return 0 }) }

// Ticks every group that is awake. Out: the handles of groups that died of it.
//
//go:wasmexport tick_all
func tickAll() int32 {
	b := begin()
	for _, g := range groups {
		if g == nil || g.dead || g.asleep {
			continue
		}
		if with(g.handle, func(g *group) int32 { g.node.Tick(); return 0 }) < 0 {
			b = put32(b, g.handle)
		}
	}
	return answer(b)
}

// in = (length u32 | bytes)*: entries of one proposal.
//
//go:wasmexport propose
func propose(h, n uint32) int32 {
	r := input(n)
	var entries []*pb.Entry
	for r.p < len(r.b) && !r.failed {
		entries = append(entries, &pb.Entry{Data: r.bytes()})
	}
	if r.failed || len(entries) == 0 {
		return malformed()
	}
	return with(h, func(g *group) int32 {
		return result(g.node.Step(&pb.Message{Type: pb.MsgProp.Enum(), From: proto.Uint64(g.id), Entries: entries}))
	})
}

// in = framed message. From the network (`local` 0) none is taken that only a group itself may send.
//
//go:wasmexport step
func step(h, n, local uint32) int32 {
	r := input(n)
	m := r.framed()
	if r.failed || r.p != len(r.b) {
		return malformed()
	}
	return with(h, func(g *group) int32 { return stepMessage(g, m, local != 0) })
}

func stepMessage(g *group, m *pb.Message, local bool) int32 {
	if !local && (raft.IsLocalMsg(m.GetType()) || raft.IsLocalMsgTarget(m.GetFrom()) ||
		raft.IsLocalMsgTarget(m.GetTo()) || m.GetTo() != g.id) {
		lastErr = "not a message from another replica"
		return resultBad
	}
	return result(g.node.Step(m))
}

// in = (handle u32 | framed message)*, all from the network. Out: (position u32 of the message, result i32)* for
// those that were not taken.
//
//go:wasmexport step_all
func stepAll(n uint32) int32 {
	r := input(n)
	b := begin()
	for at := uint32(0); r.p < len(r.b); at++ {
		h := r.u32()
		m := r.framed()
		if r.failed {
			return malformed()
		}
		if code := with(h, func(g *group) int32 { return stepMessage(g, m, false) }); code < 0 {
			b = put32(put32(b, at), uint32(code))
		}
	}
	return answer(b)
}

//go:wasmexport has_ready
func hasReady(h uint32) int32 {
	return with(h, func(g *group) int32 {
		if g.node.HasReady() {
			return 1
		}
		return 0
	})
}

// Out: a Ready, or nothing when there is none.
//
//go:wasmexport ready
func ready(h uint32) int32 {
	b := begin()
	return with(h, func(g *group) int32 {
		if g.node.HasReady() {
			b = g.putReady(b)
		}
		return answer(b)
	})
}

// Out: (handle u32 | result i32 | length u32 | Ready)* of the groups that have something, until there are
// `maxBytes`; what is left comes with the next call.
//
//go:wasmexport ready_all
func readyAll(maxBytes uint32) int32 {
	b := begin()
	next := 0
	for ; next < len(dirty) && len(b) < int(maxBytes); next++ {
		g := dirty[next]
		g.dirty = false
		if g.dead {
			continue
		}
		b = readyOne(g, b)
	}
	k := copy(dirty, dirty[next:])
	clear(dirty[k:])
	dirty = dirty[:k]
	return answer(b)
}

func readyOne(g *group, b []byte) (all []byte) {
	at := len(b)
	defer func() {
		var code int32
		if guard(g, &code, recover()); code < 0 {
			all = put32(put32(put32(b[:at], g.handle), uint32(code)), 0)
		}
	}()
	if !g.node.HasReady() || g.ready != nil {
		return b
	}
	b = g.putReady(put32(put32(put32(b, g.handle), 0), 0))
	le.PutUint32(b[at+8:], uint32(len(b)-at-12))
	if g.async && g.node.HasReady() {
		mark(g)
	}
	return b
}

// Synchronous mode: the Ready is on disk and its messages are sent.
//
//go:wasmexport advance
func advance(h uint32) int32 {
	return with(h, func(g *group) int32 {
		if g.ready == nil {
			lastErr = "no Ready is outstanding"
			return resultFailed
		}
		d := g.ready
		g.ready = nil
		if err := g.persist(d.HardState, d.Snapshot, d.Entries); err != nil {
			return result(err)
		}
		g.node.Advance(*d)
		return 0
	})
}

// Asynchronous mode: the oldest append (kind 0) is durable, or the oldest apply (1) done. Out: framed messages.
//
//go:wasmexport storage_done
func storageDone(h, kind, keepOwn uint32) int32 {
	if kind > 1 {
		return malformed()
	}
	b := begin()
	return with(h, func(g *group) int32 {
		var err error
		if b, err = g.done(kind, keepOwn != 0, b); err != nil {
			return result(err)
		}
		return answer(b)
	})
}

//go:wasmexport campaign
func campaign(h uint32) int32 {
	return with(h, func(g *group) int32 { return result(g.node.Campaign()) })
}

//go:wasmexport transfer_leader
func transferLeader(h uint32, to float64) int32 {
	return with(h, func(g *group) int32 { g.node.TransferLeader(uint64(to)); return 0 })
}

//go:wasmexport forget_leader
func forgetLeader(h uint32) int32 {
	return with(h, func(g *group) int32 { return result(g.node.ForgetLeader()) })
}

//go:wasmexport report_unreachable
func reportUnreachable(h uint32, id float64) int32 {
	return with(h, func(g *group) int32 { g.node.ReportUnreachable(uint64(id)); return 0 })
}

//go:wasmexport report_snapshot
func reportSnapshot(h uint32, id float64, ok uint32) int32 {
	status := raft.SnapshotFinish
	if ok == 0 {
		status = raft.SnapshotFailure
	}
	return with(h, func(g *group) int32 { g.node.ReportSnapshot(uint64(id), status); return 0 })
}

// in = the context that comes back with the index. Never one that was used before.
//
//go:wasmexport read_index
func readIndex(h, n uint32) int32 {
	r := input(n)
	if r.failed {
		return malformed()
	}
	return with(h, func(g *group) int32 { g.node.ReadIndex(r.b); return 0 })
}

// in = version u32 (1 or 2) | transition u32 | count u32 | (type u32 | id u64)* | context
//
//go:wasmexport propose_conf_change
func proposeConfChange(h, n uint32) int32 {
	r := input(n)
	version, transition := r.u32(), r.u32()
	changes := make([]*pb.ConfChangeSingle, r.count(12))
	for i := range changes {
		kind := r.u32()
		if kind > uint32(pb.ConfChangeAddLearnerNode) {
			r.failed = true
		}
		changes[i] = &pb.ConfChangeSingle{Type: pb.ConfChangeType(kind).Enum(), NodeId: proto.Uint64(r.u64())}
	}
	context := r.bytes()
	if r.failed || r.p != len(r.b) || transition > 2 || (version == 1 && (len(changes) != 1 || transition != 0)) {
		return malformed()
	}
	// Leaving a joint configuration takes transition 0: another one panics when it is applied, on every replica.
	if version != 1 && len(changes) == 0 && transition != 0 {
		return malformed()
	}
	var change pb.ConfChangeI = &pb.ConfChangeV2{
		Transition: pb.ConfChangeTransition(transition).Enum(), Changes: changes, Context: context,
	}
	if version == 1 {
		change = &pb.ConfChange{Type: changes[0].Type, NodeId: changes[0].NodeId, Context: context}
	}
	return with(h, func(g *group) int32 { return result(g.node.ProposeConfChange(change)) })
}

// in = entry type u32 | data of the committed entry. Out: the configuration from then on.
//
//go:wasmexport apply_conf_change
func applyConfChange(h, n uint32) int32 {
	r := input(n)
	change, err := readConfChange(r)
	if err != nil {
		return result(err)
	}
	return with(h, func(g *group) int32 { return answer(putConfState(begin(), g.node.ApplyConfChange(change))) })
}

// in as above. Out: transition u32 | count u32 | (type u32 | id u64)* | context
//
//go:wasmexport decode_conf_change
func decodeConfChange(n uint32) int32 {
	change, err := readConfChange(input(n))
	if err != nil {
		return result(err)
	}
	c := change.AsV2()
	b := put32(put32(begin(), uint32(c.GetTransition())), uint32(len(c.GetChanges())))
	for _, one := range c.GetChanges() {
		b = put64(put32(b, uint32(one.GetType())), one.GetNodeId())
	}
	return answer(putBytes(b, c.GetContext()))
}

func readConfChange(r *reader) (pb.ConfChangeI, error) {
	kind := pb.EntryType(r.u32())
	if r.failed || (kind != pb.EntryConfChange && kind != pb.EntryConfChangeV2) {
		return nil, fmt.Errorf("not a configuration change")
	}
	return confChange(kind, r.b[r.p:])
}

// in = snapshot: what a follower is sent whose entries are gone.
//
//go:wasmexport set_snapshot
func setSnapshot(h, n uint32) int32 {
	r := input(n)
	snapshot := r.snapshot()
	if r.failed || r.p != len(r.b) {
		return malformed()
	}
	return with(h, func(g *group) int32 { g.storage.latest = snapshot; return 0 })
}

// Forgets entries up to `index`.
//
//go:wasmexport compact
func compact(h uint32, index float64) int32 {
	return with(h, func(g *group) int32 {
		if last, _ := g.storage.LastIndex(); uint64(index) > last {
			return result(raft.ErrUnavailable)
		}
		return result(g.storage.Compact(uint64(index)))
	})
}

//go:wasmexport set_election_timeout
func setElectionTimeout(h, ticks uint32) int32 {
	return with(h, func(g *group) int32 { return g.setElectionTimeout(ticks) })
}

//go:wasmexport set_verbose
func setVerbose(on uint32) { verbose = on != 0 }

//go:wasmexport gc
func gc() { runtime.GC() }

//go:wasmexport gc_percent
func gcPercent(percent int32) int32 { return int32(debug.SetGCPercent(int(percent))) }
