package app

import (
	"context"
	"fmt"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/alecthomas/kong"
)

// slowNoticeAfter is how long a server may say nothing before whoever called it is told what they wait for.
const slowNoticeAfter = 10 * time.Second

// sayWaiting has people told, once, that a server is silent. There is no limit to how long it may be: a run takes its time, and so does a report. Programs are
// told nothing, nor is the screen of the inbox, which has its own words for it. stop ends it.
func (p *program) noticeWhenSlow(ctx context.Context, server string) (_ context.Context, stop func()) {
	var told atomic.Bool
	timer := time.AfterFunc(slowNoticeAfter, func() {
		if !p.screen && !told.Swap(true) {
			fmt.Fprintf(p.err, "fermata: no answer of %s yet; still waiting (Ctrl-C stops)\n", escapeControls(server))
		}
	})
	timer.Stop()
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:              func(string) { timer.Reset(slowNoticeAfter) },
		GotFirstResponseByte: func() { timer.Stop() },
	}), func() { timer.Stop() }
}

// serverOf is the server that a command speaks to, as it may be shown; "" if it speaks to none.
func serverOf(parsed *kong.Context) string {
	for _, flag := range parsed.Selected().Flags {
		if flag.Name == "url" {
			text, _ := parsed.FlagValue(flag).(string)
			if u, err := url.Parse(text); err == nil {
				return u.Redacted() // what is printed may end up in the log of a job
			}
			return "the server"
		}
	}
	return ""
}
