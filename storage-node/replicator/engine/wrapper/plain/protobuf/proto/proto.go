// Package proto stands in for google.golang.org/protobuf/proto: the calls that go.etcd.io/raft/v3 makes, over
// messages that encode themselves (../../raftpb).
package proto

import (
	"bytes"
	"errors"
	"fmt"
)

type Message interface {
	ProtoSize() int
	ProtoAppend([]byte) []byte
	ProtoUnmarshal([]byte) error
	ProtoClone() Message
	Reset()
}

func Size(m Message) int                  { return m.ProtoSize() }
func Clone(m Message) Message             { return m.ProtoClone() }
func Marshal(m Message) ([]byte, error)   { return m.ProtoAppend(nil), nil }
func Unmarshal(b []byte, m Message) error { m.Reset(); return m.ProtoUnmarshal(b) }
func Equal(a, b Message) bool             { return bytes.Equal(a.ProtoAppend(nil), b.ProtoAppend(nil)) }
func Uint64(v uint64) *uint64             { return &v }
func Bool(v bool) *bool                   { return &v }
func Text(m Message) string               { return fmt.Sprintf("%x", m.ProtoAppend(nil)) }

func BoolBit(v bool) uint64 {
	if v {
		return 1
	}
	return 0
}

func SizeVarint(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

func AppendVarint(b []byte, v uint64) []byte {
	for ; v >= 0x80; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v))
}

var errMalformed = errors.New("proto: malformed")

func Varint(b []byte) (uint64, []byte, error) {
	var v uint64
	for i := 0; i < len(b) && i < 10; i++ {
		if i == 9 && b[i] > 1 {
			break
		}
		v |= uint64(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			return v, b[i+1:], nil
		}
	}
	return 0, nil, errMalformed
}

// Field takes the next field off: its key (number and wire type), its value as a number or as bytes, and the rest.
// Fields that a message does not know are left out by whoever switches over the key.
func Field(b []byte) (key, number uint64, value, rest []byte, err error) {
	if key, rest, err = Varint(b); err != nil {
		return
	}
	if n := key >> 3; n == 0 || n > 1<<29-1 {
		err = errMalformed
		return
	}
	switch key & 7 {
	case 0:
		number, rest, err = Varint(rest)
	case 1:
		value, rest, err = cut(rest, 8)
	case 2:
		var length uint64
		if length, rest, err = Varint(rest); err == nil {
			value, rest, err = cut(rest, length)
		}
	case 5:
		value, rest, err = cut(rest, 4)
	default:
		err = errMalformed
	}
	return
}

func cut(b []byte, n uint64) (value, rest []byte, err error) {
	if n > uint64(len(b)) {
		return nil, nil, errMalformed
	}
	return b[:n:n], b[n:], nil
}
