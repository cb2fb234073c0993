package redis

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Replies of Redis pass in pieces of any size.
func TestReplies_ValidRepliesPass(t *testing.T) {
	answers := strings.Join([]string{
		"+OK\r\n", "-ERR no\r\n", ":17\r\n", "$-1\r\n", "$0\r\n\r\n", "$5\r\n*9\r\n*\r\n", "*-1\r\n", "*0\r\n", "*2\r\n$1\r\na\r\n$-1\r\n", "_\r\n", "#t\r\n", ",1.5\r\n",
		"%2\r\n+a\r\n*2\r\n:1\r\n:2\r\n+b\r\n*0\r\n", "~1\r\n+a\r\n", ">2\r\n+message\r\n$2\r\n\r\n\r\n", "|1\r\n+ttl\r\n:3\r\n*1\r\n+x\r\n", "=7\r\ntxt:abc\r\n", "!6\r\nERR no\r\n",
		"*3\r\n+OK\r\n*2\r\n|1\r\n+a\r\n+b\r\n:1\r\n:2\r\n:3\r\n", fmt.Sprintf("$%d\r\n%s\r\n", maxLine+1, strings.Repeat("x", maxLine+1)),
	}, "")
	for _, size := range []int{1, 2, 3, 5, 7, 64, len(answers)} {
		var r replyScanner
		for rest := answers; rest != ""; {
			n := min(size, len(rest))
			if err := r.scan([]byte(rest[:n])); err != nil {
				t.Fatalf("in pieces of %d, before %q: %v", size, rest[:min(20, len(rest))], err)
			}
			rest = rest[n:]
		}
		if r.skip != 0 || r.items != 0 || len(r.lists) != 0 || len(r.line) != 0 {
			t.Errorf("in pieces of %d the scanner is not idle: %+v", size, r)
		}
	}
}

// A reply that announces more than a process can hold is rejected, and everything after it.
func TestReplies_OversizedRepliesAreRejected(t *testing.T) {
	for _, answer := range []string{
		"$1000000000000\r\n", "*100000000000\r\n", "%1000000\r\n", "~2000000\r\n", ">2000000\r\n", "|2000000\r\n", "=536870913\r\n", "!536870913\r\n", "$x\r\n", "$\r\n", "$99999999999999999999\r\n",
		"*1\r\n*600000\r\n*600000\r\n", strings.Repeat("*1\r\n", maxDepth+1), "+" + strings.Repeat("x", maxLine),
	} {
		for _, size := range []int{1, 4, len(answer)} {
			var r replyScanner
			var err error
			for rest := answer; rest != "" && err == nil; {
				n := min(size, len(rest))
				err = r.scan([]byte(rest[:n]))
				rest = rest[n:]
			}
			if !errors.Is(err, errReply) || !errors.Is(r.scan([]byte("+OK\r\n")), errReply) {
				t.Errorf("%.40q passes in pieces of %d: %v", answer, size, err)
			}
		}
	}
}
