package main

// The frames of the boundary: flat, little-endian, described in ../frames.ts. A reader never goes beyond its
// bytes: it notes the failure and answers zeros, and whoever reads asks `failed` before it uses anything.

import (
	"encoding/binary"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// JavaScript's numbers end at 2^53, so the two local targets, at the end of 64 bits, have other numbers outside.
const (
	maxSafe           = 1<<53 - 1
	outsideAppendTask = maxSafe
	outsideApplyTask  = maxSafe - 1
)

// Bits of a message's first word, beside its type.
const (
	rejectBit    = 1 << 8
	snapshotBit  = 1 << 9
	responsesBit = 1 << 10
	hardBit      = 1 << 11
)

const entryHeaderBytes = 24

var le = binary.LittleEndian

func put32(b []byte, v uint32) []byte { return le.AppendUint32(b, v) }
func put64(b []byte, v uint64) []byte { return le.AppendUint64(b, v) }

func putBool(b []byte, v bool) []byte {
	if v {
		return put32(b, 1)
	}
	return put32(b, 0)
}

func putBytes(b, v []byte) []byte { return append(put32(b, uint32(len(v))), v...) }

func putID(b []byte, id uint64) []byte {
	switch id {
	case raft.LocalAppendThread:
		id = outsideAppendTask
	case raft.LocalApplyThread:
		id = outsideApplyTask
	}
	return put64(b, id)
}

func insideID(id uint64) uint64 {
	switch id {
	case outsideAppendTask:
		return raft.LocalAppendThread
	case outsideApplyTask:
		return raft.LocalApplyThread
	}
	return id
}

func putIDs(b []byte, ids []uint64) []byte {
	b = put32(b, uint32(len(ids)))
	for _, id := range ids {
		b = put64(b, id)
	}
	return b
}

func putConfState(b []byte, c *pb.ConfState) []byte {
	b = putIDs(b, c.GetVoters())
	b = putIDs(b, c.GetLearners())
	b = putIDs(b, c.GetVotersOutgoing())
	b = putIDs(b, c.GetLearnersNext())
	return putBool(b, c.GetAutoLeave())
}

func putSnapshot(b []byte, s *pb.Snapshot) []byte {
	m := s.GetMetadata()
	b = put64(b, m.GetIndex())
	b = put64(b, m.GetTerm())
	b = putConfState(b, m.GetConfState())
	return putBytes(b, s.GetData())
}

func putEntries(b []byte, entries []*pb.Entry) []byte {
	b = put32(b, uint32(len(entries)))
	for _, e := range entries {
		b = put64(b, e.GetTerm())
		b = put64(b, e.GetIndex())
		b = put32(b, uint32(e.GetType()))
		b = putBytes(b, e.GetData())
	}
	return b
}

func putHardState(b []byte, h *pb.HardState) []byte {
	b = put64(b, h.GetTerm())
	b = put64(b, h.GetVote())
	return put64(b, h.GetCommit())
}

func putFramed(b []byte, m *pb.Message) []byte {
	at := len(b)
	b = putMessage(put32(b, 0), m)
	le.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

func putMessage(b []byte, m *pb.Message) []byte {
	f := uint32(m.GetType())
	if m.GetReject() {
		f |= rejectBit
	}
	if m.Snapshot != nil {
		f |= snapshotBit
	}
	if len(m.Responses) > 0 {
		f |= responsesBit
	}
	if m.Term != nil || m.Vote != nil || m.Commit != nil {
		f |= hardBit
	}
	b = put32(b, f)
	b = putID(b, m.GetTo())
	b = putID(b, m.GetFrom())
	b = put64(b, m.GetTerm())
	b = put64(b, m.GetLogTerm())
	b = put64(b, m.GetIndex())
	b = put64(b, m.GetCommit())
	b = put64(b, m.GetVote())
	b = put64(b, m.GetRejectHint())
	b = putBytes(b, m.Context)
	b = putEntries(b, m.Entries)
	if m.Snapshot != nil {
		b = putSnapshot(b, m.Snapshot)
	}
	if f&responsesBit != 0 {
		b = put32(b, uint32(len(m.Responses)))
		for _, r := range m.Responses {
			b = putFramed(b, r)
		}
	}
	return b
}

type reader struct {
	b      []byte
	p      int
	failed bool
}

func (r *reader) take(n int) []byte {
	if r.failed || n < 0 || n > len(r.b)-r.p {
		r.failed = true
		return nil
	}
	v := r.b[r.p : r.p+n : r.p+n]
	r.p += n
	return v
}

func (r *reader) u32() uint32 {
	if v := r.take(4); v != nil {
		return le.Uint32(v)
	}
	return 0
}

// Numbers beyond what JavaScript holds exactly are as wrong as missing ones.
func (r *reader) u64() uint64 {
	v := r.take(8)
	if v == nil {
		return 0
	}
	n := le.Uint64(v)
	if n > maxSafe {
		r.failed = true
	}
	return n
}

// Not copied: the caller has made the input its own.
func (r *reader) bytes() []byte {
	v := r.take(int(r.u32()))
	if len(v) == 0 {
		return nil
	}
	return v
}

// A count of things of at least so many bytes each.
func (r *reader) count(each int) int {
	n := int(r.u32())
	if n < 0 || n > (len(r.b)-r.p)/each {
		r.failed = true
		return 0
	}
	return n
}

func (r *reader) ids() []uint64 {
	n := r.count(8)
	if n == 0 {
		return nil
	}
	ids := make([]uint64, n)
	for i := range ids {
		ids[i] = r.u64()
	}
	return ids
}

func (r *reader) confState() *pb.ConfState {
	c := &pb.ConfState{Voters: r.ids(), Learners: r.ids(), VotersOutgoing: r.ids(), LearnersNext: r.ids()}
	c.AutoLeave = proto.Bool(r.u32() != 0)
	return c
}

func (r *reader) snapshot() *pb.Snapshot {
	m := &pb.SnapshotMetadata{Index: proto.Uint64(r.u64()), Term: proto.Uint64(r.u64())}
	m.ConfState = r.confState()
	return &pb.Snapshot{Metadata: m, Data: r.bytes()}
}

func (r *reader) hardState() *pb.HardState {
	return &pb.HardState{Term: proto.Uint64(r.u64()), Vote: proto.Uint64(r.u64()), Commit: proto.Uint64(r.u64())}
}

func (r *reader) entries() []*pb.Entry {
	n := r.count(entryHeaderBytes)
	if n == 0 {
		return nil
	}
	entries := make([]*pb.Entry, n)
	for i := range entries {
		term, index, kind := r.u64(), r.u64(), r.u32()
		if kind > uint32(pb.EntryConfChangeV2) {
			r.failed = true
		}
		entries[i] = &pb.Entry{
			Term: proto.Uint64(term), Index: proto.Uint64(index), Type: pb.EntryType(kind).Enum(), Data: r.bytes(),
		}
	}
	return entries
}

func (r *reader) message() *pb.Message {
	f := r.u32()
	kind := f & 0xff
	if _, known := pb.MessageType_name[int32(kind)]; !known || f&responsesBit != 0 {
		r.failed = true
	}
	m := &pb.Message{Type: pb.MessageType(kind).Enum(), Reject: proto.Bool(f&rejectBit != 0)}
	var h [8]uint64
	for i := range h {
		h[i] = r.u64()
	}
	h[0], h[1] = insideID(h[0]), insideID(h[1])
	m.To, m.From, m.Term, m.LogTerm = &h[0], &h[1], &h[2], &h[3]
	m.Index, m.Commit, m.Vote, m.RejectHint = &h[4], &h[5], &h[6], &h[7]
	m.Context = r.bytes()
	m.Entries = r.entries()
	if f&snapshotBit != 0 {
		m.Snapshot = r.snapshot()
	}
	return m
}

// A message behind its length, which must be the message's own.
func (r *reader) framed() *pb.Message {
	inner := reader{b: r.take(int(r.u32())), failed: r.failed}
	m := inner.message()
	if inner.failed || inner.p != len(inner.b) {
		r.failed = true
	}
	return m
}
