package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/magiconair/properties"
	"github.com/pingcap/go-ycsb/pkg/prop"
	"github.com/pingcap/go-ycsb/pkg/ycsb"
)

// redisDB issues the commands of the Java YCSB's Redis binding: one connection a thread, one command
// at a time on it, nothing sent on connect. A record is a hash, and the sorted set _indices orders the
// keys for scans.
type redisDB struct {
	address    string
	fieldCount int
}

var _ ycsb.DB = redisDB{}

type connectionKey struct{}

const indexKey = "_indices"

func newRedisDB(p *properties.Properties) (redisDB, error) {
	address := net.JoinHostPort(p.GetString("redis.host", "127.0.0.1"), p.GetString("redis.port", "6379"))
	probe, err := dial(address)
	if err != nil {
		return redisDB{}, err
	}
	defer probe.close()
	return redisDB{address, int(p.GetInt64(prop.FieldCount, prop.FieldCountDefault))}, nil
}

func (db redisDB) InitThread(ctx context.Context, _ int, _ int) context.Context {
	c, err := dial(db.address)
	check(err)
	return context.WithValue(ctx, connectionKey{}, c)
}

func (db redisDB) CleanupThread(ctx context.Context) { connectionOf(ctx).close() }

func (db redisDB) Close() error { return nil }

func connectionOf(ctx context.Context) *connection {
	return ctx.Value(connectionKey{}).(*connection)
}

func (db redisDB) Read(ctx context.Context, _ string, key string, fields []string) (map[string][]byte, error) {
	return db.record(connectionOf(ctx), key, fields)
}

func (db redisDB) record(c *connection, key string, fields []string) (map[string][]byte, error) {
	var record map[string][]byte
	if len(fields) == 0 || len(fields) == db.fieldCount {
		values, err := c.call("HGETALL", key)
		if err != nil {
			return nil, err
		}
		record = make(map[string][]byte, len(values)/2)
		for i := 0; i+1 < len(values); i += 2 {
			record[string(values[i])] = values[i+1]
		}
	} else {
		values, err := c.call("HMGET", append([]string{key}, fields...)...)
		if err != nil {
			return nil, err
		}
		record = make(map[string][]byte, len(fields))
		for i, value := range values {
			if value != nil {
				record[fields[i]] = value
			}
		}
	}
	if len(record) == 0 {
		return nil, fmt.Errorf("no record %s", key)
	}
	return record, nil
}

func (db redisDB) Scan(ctx context.Context, _ string, startKey string, count int, fields []string) ([]map[string][]byte, error) {
	c := connectionOf(ctx)
	keys, err := c.call("ZRANGEBYSCORE", indexKey, score(startKey), "+inf", "limit", "0", strconv.Itoa(count))
	if err != nil {
		return nil, err
	}
	records := make([]map[string][]byte, 0, len(keys))
	for _, key := range keys {
		record, err := db.record(c, string(key), fields)
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	return records, nil
}

func (db redisDB) Update(ctx context.Context, _ string, key string, values map[string][]byte) error {
	return connectionOf(ctx).setFields(key, values)
}

func (db redisDB) Insert(ctx context.Context, _ string, key string, values map[string][]byte) error {
	c := connectionOf(ctx)
	if err := c.setFields(key, values); err != nil {
		return err
	}
	_, err := c.call("ZADD", indexKey, score(key), key)
	return err
}

func (db redisDB) Delete(ctx context.Context, _ string, key string) error {
	c := connectionOf(ctx)
	deleted, err := c.call("DEL", key)
	if err != nil || string(deleted[0]) != "0" {
		return err
	}
	_, err = c.call("ZREM", indexKey, key)
	return err
}

// score is Java's String.hashCode of the key as Java prints a double: 123456.0 or -5.94971599E8.
func score(key string) string {
	var hash int32
	for i := 0; i < len(key); i++ {
		hash = 31*hash + int32(key[i])
	}
	if hash > -10_000_000 && hash < 10_000_000 {
		return strconv.Itoa(int(hash)) + ".0"
	}
	text := strconv.FormatFloat(float64(hash), 'E', -1, 64)
	mantissa, exponent, _ := strings.Cut(text, "E+0")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	return mantissa + "E" + exponent
}
