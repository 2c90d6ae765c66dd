// The plain structs against the published messages: the same bytes, sizes and copies for random messages, and the
// same answer to bytes that are damaged. test.sh puts the plain package at plain/raftpb and plain/proto.
package fuzz

import (
	"bytes"
	"math/rand"
	"testing"

	official "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	plainproto "polyrow.raft/fuzz/plain/proto"
	plain "polyrow.raft/fuzz/plain/raftpb"
)

var kinds = []struct {
	published proto.Message
	own       func() plainproto.Message
}{
	{&official.Entry{}, func() plainproto.Message { return &plain.Entry{} }},
	{&official.SnapshotMetadata{}, func() plainproto.Message { return &plain.SnapshotMetadata{} }},
	{&official.Snapshot{}, func() plainproto.Message { return &plain.Snapshot{} }},
	{&official.Message{}, func() plainproto.Message { return &plain.Message{} }},
	{&official.HardState{}, func() plainproto.Message { return &plain.HardState{} }},
	{&official.ConfState{}, func() plainproto.Message { return &plain.ConfState{} }},
	{&official.ConfChange{}, func() plainproto.Message { return &plain.ConfChange{} }},
	{&official.ConfChangeSingle{}, func() plainproto.Message { return &plain.ConfChangeSingle{} }},
	{&official.ConfChangeV2{}, func() plainproto.Message { return &plain.ConfChangeV2{} }},
}

func number(r *rand.Rand) uint64 { return r.Uint64() >> r.Intn(64) }

func randomBytes(r *rand.Rand) []byte {
	b := make([]byte, r.Intn(40))
	r.Read(b)
	return b
}

func value(r *rand.Rand, m protoreflect.Message, f protoreflect.FieldDescriptor, depth int) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(r.Intn(2) == 0)
	case protoreflect.EnumKind:
		values := f.Enum().Values()
		return protoreflect.ValueOfEnum(values.Get(r.Intn(values.Len())).Number())
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(randomBytes(r))
	case protoreflect.MessageKind:
		var inner protoreflect.Value
		if f.IsList() {
			inner = m.Mutable(f).List().NewElement()
		} else {
			inner = m.NewField(f)
		}
		fill(r, inner.Message(), depth+1)
		return inner
	}
	return protoreflect.ValueOfUint64(number(r))
}

func fill(r *rand.Rand, m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if r.Intn(3) == 0 || (depth > 2 && f.Kind() == protoreflect.MessageKind) {
			continue
		}
		if !f.IsList() {
			m.Set(f, value(r, m, f, depth))
			continue
		}
		for range r.Intn(4) {
			m.Mutable(f).List().Append(value(r, m, f, depth))
		}
	}
}

func encode(t *testing.T, m proto.Message) []byte {
	t.Helper()
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestEncodingIsTheSame(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for range 20000 {
		for _, kind := range kinds {
			m := kind.published.ProtoReflect().New()
			fill(r, m, 0)
			want := encode(t, m.Interface())
			own := kind.own()
			if err := plainproto.Unmarshal(want, own); err != nil {
				t.Fatalf("%T: %v of %x", own, err, want)
			}
			got, _ := plainproto.Marshal(own)
			copied, _ := plainproto.Marshal(plainproto.Clone(own))
			if !bytes.Equal(got, want) || !bytes.Equal(copied, want) {
				t.Fatalf("%T: %x and copy %x, want %x", own, got, copied, want)
			}
			if size := plainproto.Size(own); size != len(want) || size != proto.Size(m.Interface()) {
				t.Fatalf("%T: size %d, want %d", own, size, len(want))
			}
		}
	}
}

// Unknown fields are kept by the one and dropped by the other, and an enum's unknown value is such a field, too.
func discard(m protoreflect.Message) {
	m.SetUnknown(nil)
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if f.Kind() != protoreflect.MessageKind {
			return true
		}
		if !f.IsList() {
			discard(v.Message())
			return true
		}
		for i := range v.List().Len() {
			discard(v.List().Get(i).Message())
		}
		return true
	})
}

func TestDamagedBytesAreTakenAlike(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	taken := 0
	for range 20000 {
		for _, kind := range kinds {
			m := kind.published.ProtoReflect().New()
			fill(r, m, 0)
			b := encode(t, m.Interface())
			for range 1 + r.Intn(3) {
				if len(b) > 0 {
					b[r.Intn(len(b))] = byte(r.Intn(256))
				}
			}
			if len(b) > 0 && r.Intn(3) == 0 {
				b = b[:r.Intn(len(b))]
			}
			own, theirs := kind.own(), m.New()
			if plainproto.Unmarshal(b, own) != nil {
				continue
			}
			got, _ := plainproto.Marshal(own)
			err := proto.Unmarshal(b, theirs.Interface())
			if err != nil {
				t.Fatalf("%T: takes %x, which the published one refuses: %v", own, b, err)
			}
			discard(theirs)
			if want := encode(t, theirs.Interface()); !bytes.Equal(got, want) {
				t.Fatalf("%T: reads %x as %x, want %x", own, b, got, want)
			}
			taken++
		}
	}
	if taken < 20000 {
		t.Fatalf("only %d damaged messages were taken", taken)
	}
}
