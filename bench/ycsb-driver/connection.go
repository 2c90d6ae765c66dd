package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
)

// connection speaks RESP2, one command at a time. It does as little as a client can, so that on a small
// machine the generator leaves the processor to the server.
type connection struct {
	socket net.Conn
	in     *bufio.Reader
	out    []byte
}

func dial(address string) (*connection, error) {
	socket, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &connection{socket: socket, in: bufio.NewReaderSize(socket, 16*1024)}, nil
}

func (c *connection) close() { c.socket.Close() }

// call sends a command and returns its answer: the items of an array, else one item. A missing value
// is nil.
func (c *connection) call(name string, args ...string) ([][]byte, error) {
	c.begin(1 + len(args))
	c.word(name)
	for _, arg := range args {
		c.word(arg)
	}
	return c.answer()
}

func (c *connection) setFields(key string, values map[string][]byte) error {
	c.begin(2 + 2*len(values))
	c.word("HMSET")
	c.word(key)
	for field, value := range values {
		c.word(field)
		c.header('$', len(value))
		c.out = append(append(c.out, value...), '\r', '\n')
	}
	_, err := c.answer()
	return err
}

func (c *connection) begin(words int) {
	c.out = c.out[:0]
	c.header('*', words)
}

func (c *connection) word(text string) {
	c.header('$', len(text))
	c.out = append(append(c.out, text...), '\r', '\n')
}

func (c *connection) header(kind byte, n int) {
	c.out = append(strconv.AppendInt(append(c.out, kind), int64(n), 10), '\r', '\n')
}

func (c *connection) answer() ([][]byte, error) {
	if _, err := c.socket.Write(c.out); err != nil {
		return nil, err
	}
	kind, rest, err := c.line()
	if err != nil {
		return nil, err
	}
	if kind != '*' {
		item, err := c.item(kind, rest)
		return [][]byte{item}, err
	}
	count, err := strconv.Atoi(string(rest))
	if err != nil {
		return nil, err
	}
	items := make([][]byte, 0, max(count, 0))
	for i := 0; i < count; i++ {
		kind, rest, err := c.line()
		if err != nil {
			return nil, err
		}
		item, err := c.item(kind, rest)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

func (c *connection) item(kind byte, rest []byte) ([]byte, error) {
	switch kind {
	case '$':
		n, err := strconv.Atoi(string(rest))
		if err != nil || n < 0 {
			return nil, err
		}
		item := make([]byte, n+2)
		if _, err := io.ReadFull(c.in, item); err != nil {
			return nil, err
		}
		return item[:n], nil
	case '+', ':':
		return append([]byte(nil), rest...), nil
	case '-':
		return nil, errors.New(string(rest))
	default:
		return nil, fmt.Errorf("an answer of unknown type %q", kind)
	}
}

// line returns the first byte of a line and what follows it, valid until the next read.
func (c *connection) line() (byte, []byte, error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return 0, nil, err
	}
	if len(line) < 3 {
		return 0, nil, errors.New("an empty answer")
	}
	return line[0], line[1 : len(line)-2], nil
}

func max(a, b int) int {
	if a > b {
		return a
	}
	return b
}
