// The messages of raft.proto (go.etcd.io/raft v3.7.0, Apache-2.0) as plain structs: the same names, fields and
// bytes as the published raft.pb.go, without the reflection behind it, which is most of that module's size.
// ../../fuzz holds it against the published encoding; the build puts it in the place of raft.pb.go.

package raftpb

import (
	"google.golang.org/protobuf/proto"
	"strconv"
)

type EntryType int32

const (
	EntryType_EntryNormal       EntryType = 0
	EntryType_EntryConfChange   EntryType = 1
	EntryType_EntryConfChangeV2 EntryType = 2
)

var EntryType_name = map[int32]string{0: "EntryNormal", 1: "EntryConfChange", 2: "EntryConfChangeV2"}

var EntryType_value = map[string]int32{"EntryNormal": 0, "EntryConfChange": 1, "EntryConfChangeV2": 2}

func (x EntryType) Enum() *EntryType { p := new(EntryType); *p = x; return p }
func (x EntryType) String() string {
	if s, ok := EntryType_name[int32(x)]; ok {
		return s
	}
	return strconv.Itoa(int(x))
}

type MessageType int32

const (
	MessageType_MsgHup               MessageType = 0
	MessageType_MsgBeat              MessageType = 1
	MessageType_MsgProp              MessageType = 2
	MessageType_MsgApp               MessageType = 3
	MessageType_MsgAppResp           MessageType = 4
	MessageType_MsgVote              MessageType = 5
	MessageType_MsgVoteResp          MessageType = 6
	MessageType_MsgSnap              MessageType = 7
	MessageType_MsgHeartbeat         MessageType = 8
	MessageType_MsgHeartbeatResp     MessageType = 9
	MessageType_MsgUnreachable       MessageType = 10
	MessageType_MsgSnapStatus        MessageType = 11
	MessageType_MsgCheckQuorum       MessageType = 12
	MessageType_MsgTransferLeader    MessageType = 13
	MessageType_MsgTimeoutNow        MessageType = 14
	MessageType_MsgReadIndex         MessageType = 15
	MessageType_MsgReadIndexResp     MessageType = 16
	MessageType_MsgPreVote           MessageType = 17
	MessageType_MsgPreVoteResp       MessageType = 18
	MessageType_MsgStorageAppend     MessageType = 19
	MessageType_MsgStorageAppendResp MessageType = 20
	MessageType_MsgStorageApply      MessageType = 21
	MessageType_MsgStorageApplyResp  MessageType = 22
	MessageType_MsgForgetLeader      MessageType = 23
)

var MessageType_name = map[int32]string{0: "MsgHup", 1: "MsgBeat", 2: "MsgProp", 3: "MsgApp", 4: "MsgAppResp", 5: "MsgVote", 6: "MsgVoteResp", 7: "MsgSnap", 8: "MsgHeartbeat", 9: "MsgHeartbeatResp", 10: "MsgUnreachable", 11: "MsgSnapStatus", 12: "MsgCheckQuorum", 13: "MsgTransferLeader", 14: "MsgTimeoutNow", 15: "MsgReadIndex", 16: "MsgReadIndexResp", 17: "MsgPreVote", 18: "MsgPreVoteResp", 19: "MsgStorageAppend", 20: "MsgStorageAppendResp", 21: "MsgStorageApply", 22: "MsgStorageApplyResp", 23: "MsgForgetLeader"}

var MessageType_value = map[string]int32{"MsgHup": 0, "MsgBeat": 1, "MsgProp": 2, "MsgApp": 3, "MsgAppResp": 4, "MsgVote": 5, "MsgVoteResp": 6, "MsgSnap": 7, "MsgHeartbeat": 8, "MsgHeartbeatResp": 9, "MsgUnreachable": 10, "MsgSnapStatus": 11, "MsgCheckQuorum": 12, "MsgTransferLeader": 13, "MsgTimeoutNow": 14, "MsgReadIndex": 15, "MsgReadIndexResp": 16, "MsgPreVote": 17, "MsgPreVoteResp": 18, "MsgStorageAppend": 19, "MsgStorageAppendResp": 20, "MsgStorageApply": 21, "MsgStorageApplyResp": 22, "MsgForgetLeader": 23}

func (x MessageType) Enum() *MessageType { p := new(MessageType); *p = x; return p }
func (x MessageType) String() string {
	if s, ok := MessageType_name[int32(x)]; ok {
		return s
	}
	return strconv.Itoa(int(x))
}

type ConfChangeTransition int32

const (
	ConfChangeTransition_ConfChangeTransitionAuto          ConfChangeTransition = 0
	ConfChangeTransition_ConfChangeTransitionJointImplicit ConfChangeTransition = 1
	ConfChangeTransition_ConfChangeTransitionJointExplicit ConfChangeTransition = 2
)

var ConfChangeTransition_name = map[int32]string{0: "ConfChangeTransitionAuto", 1: "ConfChangeTransitionJointImplicit", 2: "ConfChangeTransitionJointExplicit"}

var ConfChangeTransition_value = map[string]int32{"ConfChangeTransitionAuto": 0, "ConfChangeTransitionJointImplicit": 1, "ConfChangeTransitionJointExplicit": 2}

func (x ConfChangeTransition) Enum() *ConfChangeTransition {
	p := new(ConfChangeTransition)
	*p = x
	return p
}
func (x ConfChangeTransition) String() string {
	if s, ok := ConfChangeTransition_name[int32(x)]; ok {
		return s
	}
	return strconv.Itoa(int(x))
}

type ConfChangeType int32

const (
	ConfChangeType_ConfChangeAddNode        ConfChangeType = 0
	ConfChangeType_ConfChangeRemoveNode     ConfChangeType = 1
	ConfChangeType_ConfChangeUpdateNode     ConfChangeType = 2
	ConfChangeType_ConfChangeAddLearnerNode ConfChangeType = 3
)

var ConfChangeType_name = map[int32]string{0: "ConfChangeAddNode", 1: "ConfChangeRemoveNode", 2: "ConfChangeUpdateNode", 3: "ConfChangeAddLearnerNode"}

var ConfChangeType_value = map[string]int32{"ConfChangeAddNode": 0, "ConfChangeRemoveNode": 1, "ConfChangeUpdateNode": 2, "ConfChangeAddLearnerNode": 3}

func (x ConfChangeType) Enum() *ConfChangeType { p := new(ConfChangeType); *p = x; return p }
func (x ConfChangeType) String() string {
	if s, ok := ConfChangeType_name[int32(x)]; ok {
		return s
	}
	return strconv.Itoa(int(x))
}

type Entry struct {
	Type  *EntryType
	Term  *uint64
	Index *uint64
	Data  []byte
}

func (x *Entry) GetType() EntryType {
	if x != nil && x.Type != nil {
		return *x.Type
	}
	return 0
}
func (x *Entry) GetTerm() uint64 {
	if x != nil && x.Term != nil {
		return *x.Term
	}
	return 0
}
func (x *Entry) GetIndex() uint64 {
	if x != nil && x.Index != nil {
		return *x.Index
	}
	return 0
}
func (x *Entry) GetData() []byte {
	if x != nil {
		return x.Data
	}
	return nil
}
func (x *Entry) ProtoSize() (n int) {
	if x == nil {
		return
	}
	if x.Type != nil {
		n += 1 + proto.SizeVarint(uint64(*x.Type))
	}
	if x.Term != nil {
		n += 1 + proto.SizeVarint(uint64(*x.Term))
	}
	if x.Index != nil {
		n += 1 + proto.SizeVarint(uint64(*x.Index))
	}
	if x.Data != nil {
		n += 1 + proto.SizeVarint(uint64(len(x.Data))) + len(x.Data)
	}
	return
}
func (x *Entry) ProtoAppend(b []byte) []byte {
	if x == nil {
		return b
	}
	if x.Type != nil {
		b = proto.AppendVarint(b, 8)
		b = proto.AppendVarint(b, uint64(*x.Type))
	}
	if x.Term != nil {
		b = proto.AppendVarint(b, 16)
		b = proto.AppendVarint(b, uint64(*x.Term))
	}
	if x.Index != nil {
		b = proto.AppendVarint(b, 24)
		b = proto.AppendVarint(b, uint64(*x.Index))
	}
	if x.Data != nil {
		b = proto.AppendVarint(b, 34)
		b = proto.AppendVarint(b, uint64(len(x.Data)))
		b = append(b, x.Data...)
	}
	return b
}
func (x *Entry) ProtoClone() proto.Message {
	if x == nil {
		return (*Entry)(nil)
	}
	y := new(Entry)
	if x.Type != nil {
		z := *x.Type
		y.Type = &z
	}
	if x.Term != nil {
		z := *x.Term
		y.Term = &z
	}
	if x.Index != nil {
		z := *x.Index
		y.Index = &z
	}
	if x.Data != nil {
		y.Data = append([]byte{}, x.Data...)
	}
	return y
}
func (x *Entry) ProtoUnmarshal(b []byte) error {
	for len(b) > 0 {
		key, w, v, rest, err := proto.Field(b)
		if err != nil {
			return err
		}
		b = rest
		_, _ = w, v
		switch key {
		case 8:
			{
				z := EntryType(w)
				x.Type = &z
			}
		case 16:
			{
				z := w
				x.Term = &z
			}
		case 24:
			{
				z := w
				x.Index = &z
			}
		case 34:
			x.Data = append([]byte{}, v...)
		}
	}
	return nil
}
func (x *Entry) Reset()         { *x = Entry{} }
func (x *Entry) String() string { return proto.Text(x) }
func (x *Entry) ProtoMessage()  {}

type SnapshotMetadata struct {
	ConfState *ConfState
	Index     *uint64
	Term      *uint64
}

func (x *SnapshotMetadata) GetConfState() *ConfState {
	if x != nil {
		return x.ConfState
	}
	return nil
}
func (x *SnapshotMetadata) GetIndex() uint64 {
	if x != nil && x.Index != nil {
		return *x.Index
	}
	return 0
}
func (x *SnapshotMetadata) GetTerm() uint64 {
	if x != nil && x.Term != nil {
		return *x.Term
	}
	return 0
}
func (x *SnapshotMetadata) ProtoSize() (n int) {
	if x == nil {
		return
	}
	if x.ConfState != nil {
		l := x.ConfState.ProtoSize()
		n += 1 + proto.SizeVarint(uint64(l)) + l
	}
	if x.Index != nil {
		n += 1 + proto.SizeVarint(uint64(*x.Index))
	}
	if x.Term != nil {
		n += 1 + proto.SizeVarint(uint64(*x.Term))
	}
	return
}
func (x *SnapshotMetadata) ProtoAppend(b []byte) []byte {
	if x == nil {
		return b
	}
	if x.ConfState != nil {
		b = proto.AppendVarint(b, 10)
		b = proto.AppendVarint(b, uint64(x.ConfState.ProtoSize()))
		b = x.ConfState.ProtoAppend(b)
	}
	if x.Index != nil {
		b = proto.AppendVarint(b, 16)
		b = proto.AppendVarint(b, uint64(*x.Index))
	}
	if x.Term != nil {
		b = proto.AppendVarint(b, 24)
		b = proto.AppendVarint(b, uint64(*x.Term))
	}
	return b
}
func (x *SnapshotMetadata) ProtoClone() proto.Message {
	if x == nil {
		return (*SnapshotMetadata)(nil)
	}
	y := new(SnapshotMetadata)
	if x.ConfState != nil {
		y.ConfState = x.ConfState.ProtoClone().(*ConfState)
	}
	if x.Index != nil {
		z := *x.Index
		y.Index = &z
	}
	if x.Term != nil {
		z := *x.Term
		y.Term = &z
	}
	return y
}
func (x *SnapshotMetadata) ProtoUnmarshal(b []byte) error {
	for len(b) > 0 {
		key, w, v, rest, err := proto.Field(b)
		if err != nil {
			return err
		}
		b = rest
		_, _ = w, v
		switch key {
		case 10:
			{
				if x.ConfState == nil {
					x.ConfState = new(ConfState)
				}
				if err := x.ConfState.ProtoUnmarshal(v); err != nil {
					return err
				}
			}
		case 16:
			{
				z := w
				x.Index = &z
			}
		case 24:
			{
				z := w
				x.Term = &z
			}
		}
	}
	return nil
}
func (x *SnapshotMetadata) Reset()         { *x = SnapshotMetadata{} }
func (x *SnapshotMetadata) String() string { return proto.Text(x) }
func (x *SnapshotMetadata) ProtoMessage()  {}

type Snapshot struct {
	Data     []byte
	Metadata *SnapshotMetadata
}

func (x *Snapshot) GetData() []byte {
	if x != nil {
		return x.Data
	}
	return nil
}
func (x *Snapshot) GetMetadata() *SnapshotMetadata {
	if x != nil {
		return x.Metadata
	}
	return nil
}
func (x *Snapshot) ProtoSize() (n int) {
	if x == nil {
		return
	}
	if x.Data != nil {
		n += 1 + proto.SizeVarint(uint64(len(x.Data))) + len(x.Data)
	}
	if x.Metadata != nil {
		l := x.Metadata.ProtoSize()
		n += 1 + proto.SizeVarint(uint64(l)) + l
	}
	return
}
func (x *Snapshot) ProtoAppend(b []byte) []byte {
	if x == nil {
		return b
	}
	if x.Data != nil {
		b = proto.AppendVarint(b, 10)
		b = proto.AppendVarint(b, uint64(len(x.Data)))
		b = append(b, x.Data...)
	}
	if x.Metadata != nil {
		b = proto.AppendVarint(b, 18)
		b = proto.AppendVarint(b, uint64(x.Metadata.ProtoSize()))
		b = x.Metadata.ProtoAppend(b)
	}
	return b
}
func (x *Snapshot) ProtoClone() proto.Message {
	if x == nil {
		return (*Snapshot)(nil)
	}
	y := new(Snapshot)
	if x.Data != nil {
		y.Data = append([]byte{}, x.Data...)
	}
	if x.Metadata != nil {
		y.Metadata = x.Metadata.ProtoClone().(*SnapshotMetadata)
	}
	return y
}
func (x *Snapshot) ProtoUnmarshal(b []byte) error {
	for len(b) > 0 {
		key, w, v, rest, err := proto.Field(b)
		if err != nil {
			return err
		}
		b = rest
		_, _ = w, v
		switch key {
		case 10:
			x.Data = append([]byte{}, v...)
		case 18:
			{
				if x.Metadata == nil {
					x.Metadata = new(SnapshotMetadata)
				}
				if err := x.Metadata.ProtoUnmarshal(v); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
func (x *Snapshot) Reset()         { *x = Snapshot{} }
func (x *Snapshot) String() string { return proto.Text(x) }
func (x *Snapshot) ProtoMessage()  {}

type Message struct {
	Type       *MessageType
	To         *uint64
	From       *uint64
	Term       *uint64
	LogTerm    *uint64
	Index      *uint64
	Entries    []*Entry
	Commit     *uint64
	Snapshot   *Snapshot
	Reject     *bool
	RejectHint *uint64
	Context    []byte
	Vote       *uint64
	Responses  []*Message
}

func (x *Message) GetType() MessageType {
	if x != nil && x.Type != nil {
		return *x.Type
	}
	return 0
}
func (x *Message) GetTo() uint64 {
	if x != nil && x.To != nil {
		return *x.To
	}
	return 0
}
func (x *Message) GetFrom() uint64 {
	if x != nil && x.From != nil {
		return *x.From
	}
	return 0
}
func (x *Message) GetTerm() uint64 {
	if x != nil && x.Term != nil {
		return *x.Term
	}
	return 0
}
func (x *Message) GetLogTerm() uint64 {
	if x != nil && x.LogTerm != nil {
		return *x.LogTerm
	}
	return 0
}
func (x *Message) GetIndex() uint64 {
	if x != nil && x.Index != nil {
		return *x.Index
	}
	return 0
}
func (x *Message) GetEntries() []*Entry {
	if x != nil {
		return x.Entries
	}
	return nil
}
func (x *Message) GetCommit() uint64 {
	if x != nil && x.Commit != nil {
		return *x.Commit
	}
	return 0
}
func (x *Message) GetSnapshot() *Snapshot {
	if x != nil {
		return x.Snapshot
	}
	return nil
}
func (x *Message) GetReject() bool {
	if x != nil && x.Reject != nil {
		return *x.Reject
	}
	return false
}
func (x *Message) GetRejectHint() uint64 {
	if x != nil && x.RejectHint != nil {
		return *x.RejectHint
	}
	return 0
}
func (x *Message) GetContext() []byte {
	if x != nil {
		return x.Context
	}
	return nil
}
func (x *Message) GetVote() uint64 {
	if x != nil && x.Vote != nil {
		return *x.Vote
	}
	return 0
}
func (x *Message) GetResponses() []*Message {
	if x != nil {
		return x.Responses
	}
	return nil
}
func (x *Message) ProtoSize() (n int) {
	if x == nil {
		return
	}
	if x.Type != nil {
		n += 1 + proto.SizeVarint(uint64(*x.Type))
	}
	if x.To != nil {
		n += 1 + proto.SizeVarint(uint64(*x.To))
	}
	if x.From != nil {
		n += 1 + proto.SizeVarint(uint64(*x.From))
	}
	if x.Term != nil {
		n += 1 + proto.SizeVarint(uint64(*x.Term))
	}
	if x.LogTerm != nil {
		n += 1 + proto.SizeVarint(uint64(*x.LogTerm))
	}
	if x.Index != nil {
		n += 1 + proto.SizeVarint(uint64(*x.Index))
	}
	for _, e := range x.Entries {
		l := e.ProtoSize()
		n += 1 + proto.SizeVarint(uint64(l)) + l
	}
	if x.Commit != nil {
		n += 1 + proto.SizeVarint(uint64(*x.Commit))
	}
	if x.Snapshot != nil {
		l := x.Snapshot.ProtoSize()
		n += 1 + proto.SizeVarint(uint64(l)) + l
	}
	if x.Reject != nil {
		n += 1 + proto.SizeVarint(proto.BoolBit(*x.Reject))
	}
	if x.RejectHint != nil {
		n += 1 + proto.SizeVarint(uint64(*x.RejectHint))
	}
	if x.Context != nil {
		n += 1 + proto.SizeVarint(uint64(len(x.Context))) + len(x.Context)
	}
	if x.Vote != nil {
		n += 1 + proto.SizeVarint(uint64(*x.Vote))
	}
	for _, e := range x.Responses {
		l := e.ProtoSize()
		n += 1 + proto.SizeVarint(uint64(l)) + l
	}
	return
}
func (x *Message) ProtoAppend(b []byte) []byte {
	if x == nil {
		return b
	}
	if x.Type != nil {
		b = proto.AppendVarint(b, 8)
		b = proto.AppendVarint(b, uint64(*x.Type))
	}
	if x.To != nil {
		b = proto.AppendVarint(b, 16)
		b = proto.AppendVarint(b, uint64(*x.To))
	}
	if x.From != nil {
		b = proto.AppendVarint(b, 24)
		b = proto.AppendVarint(b, uint64(*x.From))
	}
	if x.Term != nil {
		b = proto.AppendVarint(b, 32)
		b = proto.AppendVarint(b, uint64(*x.Term))
	}
	if x.LogTerm != nil {
		b = proto.AppendVarint(b, 40)
		b = proto.AppendVarint(b, uint64(*x.LogTerm))
	}
	if x.Index != nil {
		b = proto.AppendVarint(b, 48)
		b = proto.AppendVarint(b, uint64(*x.Index))
	}
	for _, e := range x.Entries {
		b = proto.AppendVarint(b, 58)
		b = proto.AppendVarint(b, uint64(e.ProtoSize()))
		b = e.ProtoAppend(b)
	}
	if x.Commit != nil {
		b = proto.AppendVarint(b, 64)
		b = proto.AppendVarint(b, uint64(*x.Commit))
	}
	if x.Snapshot != nil {
		b = proto.AppendVarint(b, 74)
		b = proto.AppendVarint(b, uint64(x.Snapshot.ProtoSize()))
		b = x.Snapshot.ProtoAppend(b)
	}
	if x.Reject != nil {
		b = proto.AppendVarint(b, 80)
		b = proto.AppendVarint(b, proto.BoolBit(*x.Reject))
	}
	if x.RejectHint != nil {
		b = proto.AppendVarint(b, 88)
		b = proto.AppendVarint(b, uint64(*x.RejectHint))
	}
	if x.Context != nil {
		b = proto.AppendVarint(b, 98)
		b = proto.AppendVarint(b, uint64(len(x.Context)))
		b = append(b, x.Context...)
	}
	if x.Vote != nil {
		b = proto.AppendVarint(b, 104)
		b = proto.AppendVarint(b, uint64(*x.Vote))
	}
	for _, e := range x.Responses {
		b = proto.AppendVarint(b, 114)
		b = proto.AppendVarint(b, uint64(e.ProtoSize()))
		b = e.ProtoAppend(b)
	}
	return b
}
func (x *Message) ProtoClone() proto.Message {
	if x == nil {
		return (*Message)(nil)
	}
	y := new(Message)
	if x.Type != nil {
		z := *x.Type
		y.Type = &z
	}
	if x.To != nil {
		z := *x.To
		y.To = &z
	}
	if x.From != nil {
		z := *x.From
		y.From = &z
	}
	if x.Term != nil {
		z := *x.Term
		y.Term = &z
	}
	if x.LogTerm != nil {
		z := *x.LogTerm
		y.LogTerm = &z
	}
	if x.Index != nil {
		z := *x.Index
		y.Index = &z
	}
	for _, e := range x.Entries {
		y.Entries = append(y.Entries, e.ProtoClone().(*Entry))
	}
	if x.Commit != nil {
		z := *x.Commit
		y.Commit = &z
	}
	if x.Snapshot != nil {
		y.Snapshot = x.Snapshot.ProtoClone().(*Snapshot)
	}
	if x.Reject != nil {
		z := *x.Reject
		y.Reject = &z
	}
	if x.RejectHint != nil {
		z := *x.RejectHint
		y.RejectHint = &z
	}
	if x.Context != nil {
		y.Context = append([]byte{}, x.Context...)
	}
	if x.Vote != nil {
		z := *x.Vote
		y.Vote = &z
	}
	for _, e := range x.Responses {
		y.Responses = append(y.Responses, e.ProtoClone().(*Message))
	}
	return y
}
func (x *Message) ProtoUnmarshal(b []byte) error {
	for len(b) > 0 {
		key, w, v, rest, err := proto.Field(b)
		if err != nil {
			return err
		}
		b = rest
		_, _ = w, v
		switch key {
		case 8:
			{
				z := MessageType(w)
				x.Type = &z
			}
		case 16:
			{
				z := w
				x.To = &z
			}
		case 24:
			{
				z := w
				x.From = &z
			}
		case 32:
			{
				z := w
				x.Term = &z
			}
		case 40:
			{
				z := w
				x.LogTerm = &z
			}
		case 48:
			{
				z := w
				x.Index = &z
			}
		case 58:
			{
				e := new(Entry)
				if err := e.ProtoUnmarshal(v); err != nil {
					return err
				}
				x.Entries = append(x.Entries, e)
			}
		case 64:
			{
				z := w
				x.Commit = &z
			}
		case 74:
			{
				if x.Snapshot == nil {
					x.Snapshot = new(Snapshot)
				}
				if err := x.Snapshot.ProtoUnmarshal(v); err != nil {
					return err
				}
			}
		case 80:
			{
				z := w != 0
				x.Reject = &z
			}
		case 88:
			{
				z := w
				x.RejectHint = &z
			}
		case 98:
			x.Context = append([]byte{}, v...)
		case 104:
			{
				z := w
				x.Vote = &z
			}
		case 114:
			{
				e := new(Message)
				if err := e.ProtoUnmarshal(v); err != nil {
					return err
				}
				x.Responses = append(x.Responses, e)
			}
		}
	}
	return nil
}
func (x *Message) Reset()         { *x = Message{} }
func (x *Message) String() string { return proto.Text(x) }
func (x *Message) ProtoMessage()  {}

type HardState struct {
	Term   *uint64
	Vote   *uint64
	Commit *uint64
}

func (x *HardState) GetTerm() uint64 {
	if x != nil && x.Term != nil {
		return *x.Term
	}
	return 0
}
func (x *HardState) GetVote() uint64 {
	if x != nil && x.Vote != nil {
		return *x.Vote
	}
	return 0
}
func (x *HardState) GetCommit() uint64 {
	if x != nil && x.Commit != nil {
		return *x.Commit
	}
	return 0
}
func (x *HardState) ProtoSize() (n int) {
	if x == nil {
		return
	}
	if x.Term != nil {
		n += 1 + proto.SizeVarint(uint64(*x.Term))
	}
	if x.Vote != nil {
		n += 1 + proto.SizeVarint(uint64(*x.Vote))
	}
	if x.Commit != nil {
		n += 1 + proto.SizeVarint(uint64(*x.Commit))
	}
	return
}
func (x *HardState) ProtoAppend(b []byte) []byte {
	if x == nil {
		return b
	}
	if x.Term != nil {
		b = proto.AppendVarint(b, 8)
		b = proto.AppendVarint(b, uint64(*x.Term))
	}
	if x.Vote != nil {
		b = proto.AppendVarint(b, 16)
		b = proto.AppendVarint(b, uint64(*x.Vote))
	}
	if x.Commit != nil {
		b = proto.AppendVarint(b, 24)
		b = proto.AppendVarint(b, uint64(*x.Commit))
	}
	return b
}
func (x *HardState) ProtoClone() proto.Message {
	if x == nil {
		return (*HardState)(nil)
	}
	y := new(HardState)
	if x.Term != nil {
		z := *x.Term
		y.Term = &z
	}
	if x.Vote != nil {
		z := *x.Vote
		y.Vote = &z
	}
	if x.Commit != nil {
		z := *x.Commit
		y.Commit = &z
	}
	return y
}
func (x *HardState) ProtoUnmarshal(b []byte) error {
	for len(b) > 0 {
		key, w, v, rest, err := proto.Field(b)
		if err != nil {
			return err
		}
		b = rest
		_, _ = w, v
		switch key {
		case 8:
			{
				z := w
				x.Term = &z
			}
		case 16:
			{
				z := w
				x.Vote = &z
			}
		case 24:
			{
				z := w
				x.Commit = &z
			}
		}
	}
	return nil
}
func (x *HardState) Reset()         { *x = HardState{} }
func (x *HardState) String() string { return proto.Text(x) }
func (x *HardState) ProtoMessage()  {}

type ConfState struct {
	Voters         []uint64
	Learners       []uint64
	VotersOutgoing []uint64
	LearnersNext   []uint64
	AutoLeave      *bool
}

func (x *ConfState) GetVoters() []uint64 {
	if x != nil {
		return x.Voters
	}
	return nil
}
func (x *ConfState) GetLearners() []uint64 {
	if x != nil {
		return x.Learners
	}
	return nil
}
func (x *ConfState) GetVotersOutgoing() []uint64 {
	if x != nil {
		return x.VotersOutgoing
	}
	return nil
}
func (x *ConfState) GetLearnersNext() []uint64 {
	if x != nil {
		return x.LearnersNext
	}
	return nil
}
func (x *ConfState) GetAutoLeave() bool {
	if x != nil && x.AutoLeave != nil {
		return *x.AutoLeave
	}
	return false
}
func (x *ConfState) ProtoSize() (n int) {
	if x == nil {
		return
	}
	for _, e := range x.Voters {
		n += 1 + proto.SizeVarint(uint64(e))
	}
	for _, e := range x.Learners {
		n += 1 + proto.SizeVarint(uint64(e))
	}
	for _, e := range x.VotersOutgoing {
		n += 1 + proto.SizeVarint(uint64(e))
	}
	for _, e := range x.LearnersNext {
		n += 1 + proto.SizeVarint(uint64(e))
	}
	if x.AutoLeave != nil {
		n += 1 + proto.SizeVarint(proto.BoolBit(*x.AutoLeave))
	}
	return
}
func (x *ConfState) ProtoAppend(b []byte) []byte {
	if x == nil {
		return b
	}
	for _, e := range x.Voters {
		b = proto.AppendVarint(b, 8)
		b = proto.AppendVarint(b, uint64(e))
	}
	for _, e := range x.Learners {
		b = proto.AppendVarint(b, 16)
		b = proto.AppendVarint(b, uint64(e))
	}
	for _, e := range x.VotersOutgoing {
		b = proto.AppendVarint(b, 24)
		b = proto.AppendVarint(b, uint64(e))
	}
	for _, e := range x.LearnersNext {
		b = proto.AppendVarint(b, 32)
		b = proto.AppendVarint(b, uint64(e))
	}
	if x.AutoLeave != nil {
		b = proto.AppendVarint(b, 40)
		b = proto.AppendVarint(b, proto.BoolBit(*x.AutoLeave))
	}
	return b
}
func (x *ConfState) ProtoClone() proto.Message {
	if x == nil {
		return (*ConfState)(nil)
	}
	y := new(ConfState)
	if x.Voters != nil {
		y.Voters = append([]uint64{}, x.Voters...)
	}
	if x.Learners != nil {
		y.Learners = append([]uint64{}, x.Learners...)
	}
	if x.VotersOutgoing != nil {
		y.VotersOutgoing = append([]uint64{}, x.VotersOutgoing...)
	}
	if x.LearnersNext != nil {
		y.LearnersNext = append([]uint64{}, x.LearnersNext...)
	}
	if x.AutoLeave != nil {
		z := *x.AutoLeave
		y.AutoLeave = &z
	}
	return y
}
func (x *ConfState) ProtoUnmarshal(b []byte) error {
	for len(b) > 0 {
		key, w, v, rest, err := proto.Field(b)
		if err != nil {
			return err
		}
		b = rest
		_, _ = w, v
		switch key {
		case 8:
			x.Voters = append(x.Voters, w)
		case 10:
			for len(v) > 0 {
				if w, v, err = proto.Varint(v); err != nil {
					return err
				}
				x.Voters = append(x.Voters, w)
			}
		case 16:
			x.Learners = append(x.Learners, w)
		case 18:
			for len(v) > 0 {
				if w, v, err = proto.Varint(v); err != nil {
					return err
				}
				x.Learners = append(x.Learners, w)
			}
		case 24:
			x.VotersOutgoing = append(x.VotersOutgoing, w)
		case 26:
			for len(v) > 0 {
				if w, v, err = proto.Varint(v); err != nil {
					return err
				}
				x.VotersOutgoing = append(x.VotersOutgoing, w)
			}
		case 32:
			x.LearnersNext = append(x.LearnersNext, w)
		case 34:
			for len(v) > 0 {
				if w, v, err = proto.Varint(v); err != nil {
					return err
				}
				x.LearnersNext = append(x.LearnersNext, w)
			}
		case 40:
			{
				z := w != 0
				x.AutoLeave = &z
			}
		}
	}
	return nil
}
func (x *ConfState) Reset()         { *x = ConfState{} }
func (x *ConfState) String() string { return proto.Text(x) }
func (x *ConfState) ProtoMessage()  {}

type ConfChange struct {
	Id      *uint64
	Type    *ConfChangeType
	NodeId  *uint64
	Context []byte
}

func (x *ConfChange) GetId() uint64 {
	if x != nil && x.Id != nil {
		return *x.Id
	}
	return 0
}
func (x *ConfChange) GetType() ConfChangeType {
	if x != nil && x.Type != nil {
		return *x.Type
	}
	return 0
}
func (x *ConfChange) GetNodeId() uint64 {
	if x != nil && x.NodeId != nil {
		return *x.NodeId
	}
	return 0
}
func (x *ConfChange) GetContext() []byte {
	if x != nil {
		return x.Context
	}
	return nil
}
func (x *ConfChange) ProtoSize() (n int) {
	if x == nil {
		return
	}
	if x.Id != nil {
		n += 1 + proto.SizeVarint(uint64(*x.Id))
	}
	if x.Type != nil {
		n += 1 + proto.SizeVarint(uint64(*x.Type))
	}
	if x.NodeId != nil {
		n += 1 + proto.SizeVarint(uint64(*x.NodeId))
	}
	if x.Context != nil {
		n += 1 + proto.SizeVarint(uint64(len(x.Context))) + len(x.Context)
	}
	return
}
func (x *ConfChange) ProtoAppend(b []byte) []byte {
	if x == nil {
		return b
	}
	if x.Id != nil {
		b = proto.AppendVarint(b, 8)
		b = proto.AppendVarint(b, uint64(*x.Id))
	}
	if x.Type != nil {
		b = proto.AppendVarint(b, 16)
		b = proto.AppendVarint(b, uint64(*x.Type))
	}
	if x.NodeId != nil {
		b = proto.AppendVarint(b, 24)
		b = proto.AppendVarint(b, uint64(*x.NodeId))
	}
	if x.Context != nil {
		b = proto.AppendVarint(b, 34)
		b = proto.AppendVarint(b, uint64(len(x.Context)))
		b = append(b, x.Context...)
	}
	return b
}
func (x *ConfChange) ProtoClone() proto.Message {
	if x == nil {
		return (*ConfChange)(nil)
	}
	y := new(ConfChange)
	if x.Id != nil {
		z := *x.Id
		y.Id = &z
	}
	if x.Type != nil {
		z := *x.Type
		y.Type = &z
	}
	if x.NodeId != nil {
		z := *x.NodeId
		y.NodeId = &z
	}
	if x.Context != nil {
		y.Context = append([]byte{}, x.Context...)
	}
	return y
}
func (x *ConfChange) ProtoUnmarshal(b []byte) error {
	for len(b) > 0 {
		key, w, v, rest, err := proto.Field(b)
		if err != nil {
			return err
		}
		b = rest
		_, _ = w, v
		switch key {
		case 8:
			{
				z := w
				x.Id = &z
			}
		case 16:
			{
				z := ConfChangeType(w)
				x.Type = &z
			}
		case 24:
			{
				z := w
				x.NodeId = &z
			}
		case 34:
			x.Context = append([]byte{}, v...)
		}
	}
	return nil
}
func (x *ConfChange) Reset()         { *x = ConfChange{} }
func (x *ConfChange) String() string { return proto.Text(x) }
func (x *ConfChange) ProtoMessage()  {}

type ConfChangeSingle struct {
	Type   *ConfChangeType
	NodeId *uint64
}

func (x *ConfChangeSingle) GetType() ConfChangeType {
	if x != nil && x.Type != nil {
		return *x.Type
	}
	return 0
}
func (x *ConfChangeSingle) GetNodeId() uint64 {
	if x != nil && x.NodeId != nil {
		return *x.NodeId
	}
	return 0
}
func (x *ConfChangeSingle) ProtoSize() (n int) {
	if x == nil {
		return
	}
	if x.Type != nil {
		n += 1 + proto.SizeVarint(uint64(*x.Type))
	}
	if x.NodeId != nil {
		n += 1 + proto.SizeVarint(uint64(*x.NodeId))
	}
	return
}
func (x *ConfChangeSingle) ProtoAppend(b []byte) []byte {
	if x == nil {
		return b
	}
	if x.Type != nil {
		b = proto.AppendVarint(b, 8)
		b = proto.AppendVarint(b, uint64(*x.Type))
	}
	if x.NodeId != nil {
		b = proto.AppendVarint(b, 16)
		b = proto.AppendVarint(b, uint64(*x.NodeId))
	}
	return b
}
func (x *ConfChangeSingle) ProtoClone() proto.Message {
	if x == nil {
		return (*ConfChangeSingle)(nil)
	}
	y := new(ConfChangeSingle)
	if x.Type != nil {
		z := *x.Type
		y.Type = &z
	}
	if x.NodeId != nil {
		z := *x.NodeId
		y.NodeId = &z
	}
	return y
}
func (x *ConfChangeSingle) ProtoUnmarshal(b []byte) error {
	for len(b) > 0 {
		key, w, v, rest, err := proto.Field(b)
		if err != nil {
			return err
		}
		b = rest
		_, _ = w, v
		switch key {
		case 8:
			{
				z := ConfChangeType(w)
				x.Type = &z
			}
		case 16:
			{
				z := w
				x.NodeId = &z
			}
		}
	}
	return nil
}
func (x *ConfChangeSingle) Reset()         { *x = ConfChangeSingle{} }
func (x *ConfChangeSingle) String() string { return proto.Text(x) }
func (x *ConfChangeSingle) ProtoMessage()  {}

type ConfChangeV2 struct {
	Transition *ConfChangeTransition
	Changes    []*ConfChangeSingle
	Context    []byte
}

func (x *ConfChangeV2) GetTransition() ConfChangeTransition {
	if x != nil && x.Transition != nil {
		return *x.Transition
	}
	return 0
}
func (x *ConfChangeV2) GetChanges() []*ConfChangeSingle {
	if x != nil {
		return x.Changes
	}
	return nil
}
func (x *ConfChangeV2) GetContext() []byte {
	if x != nil {
		return x.Context
	}
	return nil
}
func (x *ConfChangeV2) ProtoSize() (n int) {
	if x == nil {
		return
	}
	if x.Transition != nil {
		n += 1 + proto.SizeVarint(uint64(*x.Transition))
	}
	for _, e := range x.Changes {
		l := e.ProtoSize()
		n += 1 + proto.SizeVarint(uint64(l)) + l
	}
	if x.Context != nil {
		n += 1 + proto.SizeVarint(uint64(len(x.Context))) + len(x.Context)
	}
	return
}
func (x *ConfChangeV2) ProtoAppend(b []byte) []byte {
	if x == nil {
		return b
	}
	if x.Transition != nil {
		b = proto.AppendVarint(b, 8)
		b = proto.AppendVarint(b, uint64(*x.Transition))
	}
	for _, e := range x.Changes {
		b = proto.AppendVarint(b, 18)
		b = proto.AppendVarint(b, uint64(e.ProtoSize()))
		b = e.ProtoAppend(b)
	}
	if x.Context != nil {
		b = proto.AppendVarint(b, 26)
		b = proto.AppendVarint(b, uint64(len(x.Context)))
		b = append(b, x.Context...)
	}
	return b
}
func (x *ConfChangeV2) ProtoClone() proto.Message {
	if x == nil {
		return (*ConfChangeV2)(nil)
	}
	y := new(ConfChangeV2)
	if x.Transition != nil {
		z := *x.Transition
		y.Transition = &z
	}
	for _, e := range x.Changes {
		y.Changes = append(y.Changes, e.ProtoClone().(*ConfChangeSingle))
	}
	if x.Context != nil {
		y.Context = append([]byte{}, x.Context...)
	}
	return y
}
func (x *ConfChangeV2) ProtoUnmarshal(b []byte) error {
	for len(b) > 0 {
		key, w, v, rest, err := proto.Field(b)
		if err != nil {
			return err
		}
		b = rest
		_, _ = w, v
		switch key {
		case 8:
			{
				z := ConfChangeTransition(w)
				x.Transition = &z
			}
		case 18:
			{
				e := new(ConfChangeSingle)
				if err := e.ProtoUnmarshal(v); err != nil {
					return err
				}
				x.Changes = append(x.Changes, e)
			}
		case 26:
			x.Context = append([]byte{}, v...)
		}
	}
	return nil
}
func (x *ConfChangeV2) Reset()         { *x = ConfChangeV2{} }
func (x *ConfChangeV2) String() string { return proto.Text(x) }
func (x *ConfChangeV2) ProtoMessage()  {}
