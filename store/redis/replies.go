package redis

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strconv"
	"syscall"

	goredis "github.com/redis/go-redis/v9"
)

// What an answer of Redis may have. The client makes room for whatever length an answer announces, before it has read more, and goes as deep as it is led:
// a process that has not so much memory, or stack, ends at once, and nothing can catch that.
const (
	maxBulk  = 512 << 20 // bytes of one string; Redis itself takes no longer ones
	maxItems = 1 << 20   // in all lists that are not over
	maxDepth = 16        // of lists in lists
	maxLine  = 64 << 10  // bytes of what is no string, as an error
)

// errReply says that this is no answer of Redis.
var errReply = errors.New("redis: an answer that cannot be one")

// withReplyLimits makes a client look at what answers announce before it believes them.
func withReplyLimits(options *goredis.Options) {
	dial := goredis.NewDialer(options)
	options.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if raw, ok := conn.(syscall.Conn); ok { // by which the client sees that an idle connection was closed
			return &limitedRawConn{limitedConn{Conn: conn}, raw}, nil
		}
		return &limitedConn{Conn: conn}, nil
	}
}

// limitedConn is a connection on which only answers arrive that can be ones.
type limitedConn struct {
	net.Conn
	replies replyScanner
}

type limitedRawConn struct {
	limitedConn
	raw syscall.Conn
}

func (r *limitedRawConn) SyscallConn() (syscall.RawConn, error) { return r.raw.SyscallConn() }

func (c *limitedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if failure := c.replies.scan(p[:n]); failure != nil {
		return 0, failure
	}
	return n, err
}

// replyScanner follows a stream of answers (RESP 2 and 3), in pieces of any size, as far as lengths go.
type replyScanner struct {
	line  []byte // as much as there is of the line that announces what follows
	skip  int    // bytes of a string, and the end of its line, that are to come
	lists []int  // how many items are to come, in each list that is not over, the outermost first
	items int    // the sum of lists
	err   error  // there is no way back into step
}

// see looks at the next piece.
func (r *replyScanner) scan(data []byte) error {
	for len(data) > 0 && r.err == nil {
		if r.skip > 0 {
			n := min(r.skip, len(data))
			r.skip, data = r.skip-n, data[n:]
			continue
		}
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			end = len(data) - 1
		}
		r.line = append(r.line, data[:end+1]...)
		data = data[end+1:]
		switch {
		case r.line[len(r.line)-1] == '\n':
			r.err = r.parseLine()
			r.line = r.line[:0]
		case len(r.line) > maxLine:
			r.err = errReply
		}
	}
	return r.err
}

// announced takes a whole line.
func (r *replyScanner) parseLine() error {
	kind, count := r.line[0], 0
	if n := len(r.lists); n > 0 && kind != '|' { // which is about the one that follows, and not one itself
		r.lists[n-1]--
		r.items--
	}
	switch kind {
	case '$', '=', '!', '*', '~', '>', '%', '|':
		var err error
		if count, err = strconv.Atoi(string(bytes.TrimSpace(r.line[1:]))); err != nil || count > maxBulk {
			return errReply
		}
	}
	switch kind {
	case '$', '=', '!':
		if count >= 0 { // or there is none
			r.skip = count + len("\r\n")
		}
	case '%', '|':
		count *= 2
		fallthrough
	case '*', '~', '>':
		count = max(count, 0)
		r.lists, r.items = append(r.lists, count), r.items+count
	}
	if r.items > maxItems || len(r.lists) > maxDepth {
		return errReply
	}
	for n := len(r.lists); n > 0 && r.lists[n-1] == 0; n-- {
		r.lists = r.lists[:n-1]
	}
	return nil
}
