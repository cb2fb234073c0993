package redis

import (
	"bufio"
	"net"
	"strings"
	"testing"
)

// malformedServer replaces Redis. It greets like an old Redis and sends the same reply to every
// other command.
func malformedServer(t *testing.T, answer string) (url string) {
	t.Helper()
	return "redis://" + fakeServer(t, func(conn net.Conn) {
		lines := bufio.NewScanner(conn)
		for n := 1; lines.Scan(); n++ {
			if n%3 != 0 { // the number of words, the length of the first, the first
				continue
			}
			reply := answer
			if word := lines.Text(); word == "hello" || word == "client" {
				reply = "-ERR unknown command\r\n"
			}
			if _, err := conn.Write([]byte(reply)); err != nil {
				return
			}
		}
	})
}

// fakeServer starts a server that replaces Redis and returns its address.
func fakeServer(t *testing.T, serve func(conn net.Conn)) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				serve(conn)
			}()
		}
	}()
	return listener.Addr().String()
}

// Any server in place of Redis counts as an unavailable Redis. The client panicked on an impossible
// length, and a server that always reports a wrong type was asked to delete the key until the
// timeout.
func TestMalformed_AnyServerIsTreatedAsUnavailable(t *testing.T) {
	for name, answer := range map[string]string{
		"a string of any length":     "$9223372036854775000\r\n",
		"an array of any length":     "*9223372036854775000\r\n",
		"a map of any length":        "%9223372036854775000\r\n",
		"a string of a terabyte":     "$1000000000000\r\n",
		"an array of terabytes":      "*100000000000\r\n",
		"a map of terabytes":         "%100000000000\r\n",
		"an array in pushes":         ">2\r\n$1\r\nx\r\n~100000000000\r\n",
		"arrays without end":         strings.Repeat("*1\r\n", 1000),
		"an invalid length":          "$-17\r\n",
		"another protocol":           "HTTP/1.1 400 Bad Request\r\n\r\n",
		"an empty line":              "\r\n",
		"fewer values than asked":    "*0\r\n",
		"values of other types":      "*1\r\n:5\r\n",
		"a status":                   "+OK\r\n",
		"nothing":                    "*-1\r\n",
		"no permission":              "-NOPERM this user has no permissions\r\n",
		"loading":                    "-LOADING Redis is loading the dataset in memory\r\n",
		"moved to nowhere":           "-MOVED 3999 127.0.0.1:1\r\n",
		"a replica that only reads":  "-READONLY You can't write against a read only replica.\r\n",
		"out of memory":              "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
		"wrong type, whatever it is": "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
		"an unexpected push":         ">2\r\n$7\r\nmessage\r\n$1\r\nx\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := mustNew(t, newBaseStore(), mustClient(t, malformedServer(t, answer)), Config{})
			for base := range int64(6) {
				mustSave(t, s, demo, base, parts{"a": "1"}.delta())
				wantStored(t, s, demo, parts{"a": "1"}.at(base+1))
			}
			if err := s.Delete(t.Context(), demo); err != nil {
				t.Error(err)
			}
			if stats := s.Stats(); stats.Hits != 0 || stats.Corrupt > 20 {
				t.Errorf("stats %+v; want no hits, and at most one deletion per call", stats)
			}
		})
	}
}
