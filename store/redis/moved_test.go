package redis

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
)

// movedServer replaces Redis, greets like a new one, accepts everything, and announces a move to
// another address.
func movedServer(t *testing.T, to string) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	address := fakeServer(t, func(conn net.Conn) {
		for reader := bufio.NewReader(conn); ; {
			words, err := command(reader)
			if err != nil {
				return
			}
			reply := "+OK\r\n"
			switch strings.ToLower(words[0]) {
			case "hello":
				reply = "%2\r\n+server\r\n+redis\r\n+proto\r\n:3\r\n"
			case "hmget":
				reply = fmt.Sprintf(">4\r\n+MOVING\r\n:1\r\n:1\r\n+%s\r\n*%d\r\n%s", to, len(words)-2, strings.Repeat("_\r\n", len(words)-2))
			case "client":
				if len(words) > 1 && strings.EqualFold(words[1], "maint_notifications") {
					asked.Add(1)
				}
			}
			if _, err := conn.Write([]byte(reply)); err != nil {
				return
			}
		}
	})
	return "redis://:secret@" + address + "?protocol=3", asked
}

// command reads one command.
func command(r *bufio.Reader) (words []string, err error) {
	var n, size int
	if _, err = fmt.Fscanf(r, "*%d\r\n", &n); err != nil {
		return nil, err
	}
	for range n {
		if _, err = fmt.Fscanf(r, "$%d\r\n", &size); err != nil {
			return nil, err
		}
		word := make([]byte, size+2)
		for read := 0; read < len(word); {
			k, err := r.Read(word[read:])
			if err != nil {
				return nil, err
			}
			read += k
		}
		words = append(words, string(word[:size]))
	}
	return words, nil
}

// A reply must not redirect the client: an attacker who controls Redis could make this server
// connect to any address and send the password.
func TestI7_MovedNotificationIsNotFollowed(t *testing.T) {
	elsewhere, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = elsewhere.Close() }()
	came := make(chan net.Conn, 1)
	go func() {
		if conn, err := elsewhere.Accept(); err == nil {
			came <- conn
		}
	}()
	url, asked := movedServer(t, elsewhere.Addr().String())
	s := mustNew(t, newBaseStore(), mustClient(t, url), longTimeout)
	mustSave(t, s, demo, 0, parts{"a": "1"}.delta())
	for range 5 {
		wantStored(t, s, demo, parts{"a": "1"}.at(1))
	}
	select {
	case <-came:
		t.Error("the client followed the redirect")
	default:
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("%d requests for move notifications", n)
	}
}
