package tui

import (
	"context"
	"strconv"
	"testing"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
)

// large is a server whose requests are so large that two fill a page.
type large struct {
	Server
	asked int
}

func (l large) Requests(_ context.Context, q client.Query) (page api.Page[api.Request], err error) {
	at, _ := strconv.Atoi(q.Cursor)
	for ; at < l.asked && len(page.Items) < min(q.Limit, 2); at++ {
		page.Items = append(page.Items, api.Request{ID: strconv.Itoa(at)})
	}
	if at < l.asked {
		page.Next = strconv.Itoa(at)
	}
	return page, nil
}

// A few large requests must not hide those behind them.
func TestFirst_AreAsManyAsWereAskedFor(t *testing.T) {
	for _, c := range []struct {
		asked, limit, want int
		more               bool
	}{{0, 5, 0, false}, {4, 5, 4, false}, {5, 5, 5, false}, {6, 5, 5, true}} {
		got, err := First(t.Context(), large{asked: c.asked}, client.Query{Limit: c.limit})
		if err != nil || len(got.Items) != c.want || (got.Next != "") != c.more {
			t.Errorf("of %d there are %d, and more: %q, %v", c.asked, len(got.Items), got.Next, err)
		}
		for i, r := range got.Items {
			if r.ID != strconv.Itoa(i) {
				t.Errorf("in the place %d is %s", i, r.ID)
			}
		}
	}
}
