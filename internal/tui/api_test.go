package tui

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
)

// largePages is a server whose requests are so large that two fill a page.
type largePages struct {
	Server
	asked int
}

func (l largePages) Requests(_ context.Context, q client.Query) (page api.Page[api.Request], err error) {
	at, _ := strconv.Atoi(q.Cursor)
	for ; at < l.asked && len(page.Items) < min(q.Limit, 2); at++ {
		page.Items = append(page.Items, api.Request{ID: strconv.Itoa(at)})
	}
	if at < l.asked {
		page.Next = strconv.Itoa(at)
	}
	return page, nil
}

// A few large requests must not hide the following ones.
func TestFetchUpTo_ReturnsRequestedCount(t *testing.T) {
	for _, c := range []struct {
		asked, limit, want int
		more               bool
	}{{0, 5, 0, false}, {4, 5, 4, false}, {5, 5, 5, false}, {6, 5, 5, true}} {
		got, err := FetchUpTo(t.Context(), largePages{asked: c.asked}.Requests, client.Query{Limit: c.limit})
		if err != nil || len(got.Items) != c.want || (got.Next != "") != c.more {
			t.Errorf("of %d there are %d, and more: %q, %v", c.asked, len(got.Items), got.Next, err)
		}
		for i, r := range got.Items {
			if r.ID != strconv.Itoa(i) {
				t.Errorf("at position %d is %s", i, r.ID)
			}
		}
	}
}

// many is a server with a maximum page size of a thousand, as ours.
func many(asked int) func(context.Context, client.Query) (api.Page[api.Request], error) {
	return func(_ context.Context, q client.Query) (page api.Page[api.Request], err error) {
		if q.Limit > 1000 {
			return page, errors.New("bad_request: expected number <= 1000")
		}
		at, _ := strconv.Atoi(q.Cursor)
		page.Items = make([]api.Request, min(q.Limit, asked-at))
		if at += len(page.Items); at < asked {
			page.Next = strconv.Itoa(at)
		}
		return page, nil
	}
}

// With more than a thousand open requests the list suggested a --limit that the server rejected.
func TestFetchUpTo_SpansSeveralPages(t *testing.T) {
	for _, c := range []struct {
		limit, want int
		more        bool
	}{{1000, 1000, true}, {1001, 1001, true}, {2300, 2300, false}, {10_000, 2300, false}} {
		got, err := FetchUpTo(t.Context(), many(2300), client.Query{Limit: c.limit})
		if err != nil || len(got.Items) != c.want || (got.Next != "") != c.more {
			t.Errorf("of 2300, with a limit of %d, there are %d, and more: %q, %v", c.limit, len(got.Items), got.Next, err)
		}
	}
}
