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

// Limits for replies of Redis. The client allocates memory for any announced length before it reads
// more, and recurses to any depth. A process without enough memory or stack would crash.
const (
	maxBulk  = 512 << 20 // bytes of one string; Redis has the same limit
	maxItems = 1 << 20   // in all open lists
	maxDepth = 16        // of nested lists
	maxLine  = 64 << 10  // bytes of a line, such as an error
)

// errReply is returned for an impossible reply.
var errReply = errors.New("redis: malformed reply")

// withReplyLimits makes a client check announced lengths before it uses them.
func withReplyLimits(options *goredis.Options) {
	dial := goredis.NewDialer(options)
	options.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		// with which the client detects that an idle connection was closed
		if raw, ok := conn.(syscall.Conn); ok {
			return &limitedRawConn{limitedConn{Conn: conn}, raw}, nil
		}
		return &limitedConn{Conn: conn}, nil
	}
}

// limitedConn is a connection that checks replies.
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

// replyScanner follows a stream of replies (RESP 2 and 3), in pieces of any size, to check lengths.
type replyScanner struct {
	line  []byte // the incomplete line that announces what follows
	skip  int    // remaining bytes of a string and its line end
	lists []int  // remaining items of each open list, the outermost first
	items int    // the sum of lists
	err   error  // the stream cannot be resynchronized
}

// scan checks the next piece.
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

// parseLine checks a complete line.
func (r *replyScanner) parseLine() error {
	kind, count := r.line[0], 0
	if n := len(r.lists); n > 0 && kind != '|' { // an attribute precedes a reply and is not one
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
		if count >= 0 { // or null
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
