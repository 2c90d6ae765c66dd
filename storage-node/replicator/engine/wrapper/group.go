package main

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"unsafe"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

type group struct {
	handle  uint32
	node    *raft.RawNode
	storage *storage
	id      uint64
	async   bool
	asleep  bool
	dead    bool
	// In the list of groups that may have a Ready.
	dirty bool
	// Synchronous mode: the Ready handed out and not advanced past.
	ready *raft.Ready
	// Asynchronous mode: handed out and not done, oldest first.
	appends, applies []*pb.Message
}

// The log that the library reads. Entries are references of a few bytes, so all of them are in memory. What a
// follower is sent when its entries are gone is set apart from what the log was cut to.
type storage struct {
	*raft.MemoryStorage
	latest *pb.Snapshot
}

func (s *storage) Snapshot() (*pb.Snapshot, error) {
	if s.latest != nil {
		return s.latest, nil
	}
	return s.MemoryStorage.Snapshot()
}

func (s *storage) install(snapshot *pb.Snapshot) error {
	s.latest = nil
	return s.ApplySnapshot(snapshot)
}

const (
	resultDropped = -1
	resultDead    = -2
	resultFailed  = -3
	resultBad     = -4
)

const (
	flagPreVote = 1 << iota
	flagCheckQuorum
	flagAsync
	flagLeaseReads
	flagNoForwarding
	flagStepDownOnRemoval
	flagNoConfChangeValidation
)

var (
	groups []*group
	free   []uint32
	dirty  []*group
)

func lookup(h uint32) *group {
	if int(h) >= len(groups) {
		return nil
	}
	return groups[h]
}

func result(err error) int32 {
	if err == nil {
		return 0
	}
	lastErr = err.Error()
	if errors.Is(err, raft.ErrProposalDropped) {
		return resultDropped
	}
	return resultFailed
}

// Runs `f` on a group. What the library panics over ends the group, and no other.
func with(h uint32, f func(g *group) int32) (code int32) {
	g := lookup(h)
	if g == nil {
		lastErr = "no such group"
		return resultBad
	}
	if g.dead {
		lastErr = "the group is dead"
		return resultDead
	}
	defer func() { guard(g, &code, recover()) }()
	code = f(g)
	mark(g)
	return code
}

func mark(g *group) {
	if !g.dirty {
		g.dirty = true
		dirty = append(dirty, g)
	}
}

func guard(g *group, code *int32, e any) {
	if e != nil {
		g.dead = true
		lastErr = fmt.Sprint(e)
		*code = resultDead
	}
}

// in = id u64 | election ticks u32 | heartbeat ticks u32 | flags u32 | max message bytes u64 | max committed bytes u64
//
//	| max inflight messages u32 | max uncommitted bytes u64 | applied u64 | snapshot | hard state | entries
func createGroup(r *reader) (code int32) {
	cfg := &raft.Config{ID: r.u64(), ElectionTick: int(r.u32()), HeartbeatTick: int(r.u32())}
	flags := r.u32()
	cfg.PreVote = flags&flagPreVote != 0
	cfg.CheckQuorum = flags&flagCheckQuorum != 0
	cfg.AsyncStorageWrites = flags&flagAsync != 0
	if flags&flagLeaseReads != 0 {
		cfg.ReadOnlyOption = raft.ReadOnlyLeaseBased
	}
	cfg.DisableProposalForwarding = flags&flagNoForwarding != 0
	cfg.StepDownOnRemoval = flags&flagStepDownOnRemoval != 0
	cfg.DisableConfChangeValidation = flags&flagNoConfChangeValidation != 0
	cfg.MaxSizePerMsg = limit(r.u64())
	cfg.MaxCommittedSizePerReady = limit(r.u64())
	cfg.MaxInflightMsgs = int(r.u32())
	cfg.MaxUncommittedEntriesSize = limit(r.u64())
	cfg.Applied = r.u64()
	snapshot, hard, entries := r.snapshot(), r.hardState(), r.entries()
	if r.failed || r.p != len(r.b) {
		return malformed()
	}
	g := &group{storage: &storage{MemoryStorage: raft.NewMemoryStorage()}, id: cfg.ID, async: cfg.AsyncStorageWrites}
	defer func() {
		// The library panics over a configuration that it does not take: there is no group yet that could be dead.
		if guard(g, &code, recover()); code == resultDead {
			code = resultFailed
		}
	}()
	if !raft.IsEmptySnap(snapshot) {
		if err := g.storage.ApplySnapshot(snapshot); err != nil {
			return result(err)
		}
	}
	if err := checkLog(snapshot.GetMetadata(), hard, cfg.Applied, entries); err != nil {
		return result(err)
	}
	if !raft.IsEmptyHardState(hard) {
		_ = g.storage.SetHardState(hard)
	}
	if err := g.storage.Append(entries); err != nil {
		return result(err)
	}
	cfg.Storage = g.storage
	node, err := raft.NewRawNode(cfg)
	if err != nil {
		return result(err)
	}
	g.node = node
	if k := len(free); k > 0 {
		g.handle = free[k-1]
		free = free[:k-1]
		groups[g.handle] = g
	} else {
		g.handle = uint32(len(groups))
		groups = append(groups, g)
	}
	mark(g)
	return int32(g.handle)
}

func limit(v uint64) uint64 {
	if v == 0 {
		return math.MaxUint64
	}
	return v
}

// What the library would panic over, or worse, believe.
func checkLog(m *pb.SnapshotMetadata, hard *pb.HardState, applied uint64, entries []*pb.Entry) error {
	last, term := m.GetIndex(), m.GetTerm()
	for _, e := range entries {
		if e.GetIndex() != last+1 || e.GetTerm() < term {
			return fmt.Errorf("entry %d of term %d follows entry %d of term %d", e.GetIndex(), e.GetTerm(), last, term)
		}
		last, term = e.GetIndex(), e.GetTerm()
	}
	commit := max(hard.GetCommit(), m.GetIndex())
	if commit > last || applied > commit || (applied != 0 && applied < m.GetIndex()) {
		return fmt.Errorf("applied %d, commit %d and last index %d do not go together", applied, commit, last)
	}
	return nil
}

func destroyGroup(g *group) {
	g.dead = true
	groups[g.handle] = nil
	free = append(free, g.handle)
}

func (g *group) persist(hard *pb.HardState, snapshot *pb.Snapshot, entries []*pb.Entry) error {
	if snapshot != nil && !raft.IsEmptySnap(snapshot) {
		if err := g.storage.install(snapshot); err != nil {
			return err
		}
	}
	if hard != nil && !raft.IsEmptyHardState(hard) {
		if err := g.storage.SetHardState(hard); err != nil {
			return err
		}
	}
	return g.storage.Append(entries)
}

// Ready: flags u32 | [soft: lead u64, role u32] | [hard state] | [snapshot] | entries | committed | messages | reads
func (g *group) putReady(b []byte) []byte {
	d := g.node.Ready()
	if !g.async {
		g.ready = &d
	}
	f := uint32(0)
	if d.SoftState != nil {
		f |= 1
	}
	hasHard, hasSnapshot := !raft.IsEmptyHardState(d.HardState), !raft.IsEmptySnap(d.Snapshot)
	if hasHard {
		f |= 2
	}
	if hasSnapshot {
		f |= 4
	}
	if d.MustSync {
		f |= 8
	}
	b = put32(b, f)
	if d.SoftState != nil {
		b = put64(b, d.SoftState.Lead)
		b = put32(b, uint32(d.SoftState.RaftState))
	}
	if hasHard {
		b = putHardState(b, d.HardState)
	}
	if hasSnapshot {
		b = putSnapshot(b, d.Snapshot)
	}
	b = putEntries(b, d.Entries)
	b = putEntries(b, d.CommittedEntries)
	b = put32(b, uint32(len(d.Messages)))
	for _, m := range d.Messages {
		switch m.GetType() {
		case pb.MsgStorageAppend:
			g.appends = append(g.appends, m)
		case pb.MsgStorageApply:
			g.applies = append(g.applies, m)
		}
		b = putFramed(b, m)
	}
	b = put32(b, uint32(len(d.ReadStates)))
	for _, s := range d.ReadStates {
		b = put64(b, s.Index)
		b = putBytes(b, s.RequestCtx)
	}
	return b
}

// The oldest append (0) or apply (1) handed out is done: answers the messages that waited for it. Those to this
// group itself are stepped at once, unless `keepOwn`.
func (g *group) done(kind uint32, keepOwn bool, b []byte) ([]byte, error) {
	queue := &g.appends
	if kind == 1 {
		queue = &g.applies
	}
	if len(*queue) == 0 {
		return b, errors.New("no storage work is outstanding")
	}
	m := (*queue)[0]
	(*queue)[0] = nil
	*queue = (*queue)[1:]
	if kind == 0 {
		var hard *pb.HardState
		if m.Term != nil || m.Vote != nil || m.Commit != nil {
			hard = &pb.HardState{Term: m.Term, Vote: m.Vote, Commit: m.Commit}
		}
		if err := g.persist(hard, m.Snapshot, m.Entries); err != nil {
			return b, err
		}
	}
	for _, r := range m.GetResponses() {
		if keepOwn || r.GetTo() != g.id {
			b = putFramed(b, r)
		} else if err := g.node.Step(r); err != nil && !errors.Is(err, raft.ErrStepPeerNotFound) {
			// A replica that has just been removed does not count its own answers any more.
			return b, err
		}
	}
	return b, nil
}

// The library draws it by itself whenever a role begins. Set from outside only to stagger campaigns, and to play
// upstream's transcripts, which do the same from a test inside the library.
func (g *group) setElectionTimeout(ticks uint32) int32 {
	field := reflect.ValueOf(g.node).Elem().FieldByName("raft").Elem().FieldByName("randomizedElectionTimeout")
	if !field.IsValid() {
		lastErr = "the library has no such field"
		return resultFailed
	}
	*(*int)(unsafe.Pointer(field.UnsafeAddr())) = int(ticks)
	return 0
}

func confChange(kind pb.EntryType, data []byte) (pb.ConfChangeI, error) {
	if kind == pb.EntryConfChange {
		c := &pb.ConfChange{}
		return c, proto.Unmarshal(data, c)
	}
	c := &pb.ConfChangeV2{}
	return c, proto.Unmarshal(data, c)
}
