package cli

import (
	"context"
	"fmt"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/alecthomas/kong"
)

// slowNoticeAfter is how long a server may take before a notice is printed.
const slowNoticeAfter = 10 * time.Second

// NoticeWhenSlow prints a notice, once, if the server does not answer. There is no timeout: a run
// or a report may take long. It prints nothing with --json, nor in the inbox screen, which has its
// own indicator. stop cancels it.
func (p *Program) NoticeWhenSlow(ctx context.Context, server string) (_ context.Context, stop func()) {
	var told atomic.Bool
	timer := time.AfterFunc(slowNoticeAfter, func() {
		if !p.Screen && !told.Swap(true) {
			fmt.Fprintf(p.Err, "fermata: no response from %s yet; still waiting (Ctrl-C to stop)\n", EscapeControls(server))
		}
	})
	timer.Stop()
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:              func(string) { timer.Reset(slowNoticeAfter) },
		GotFirstResponseByte: func() { timer.Stop() },
	}), func() { timer.Stop() }
}

// ServerOf returns the server that a command calls, in printable form; "" if it calls none.
func ServerOf(parsed *kong.Context) string {
	for _, flag := range parsed.Selected().Flags {
		if account, _ := parsed.FlagValue(flag).(string); flag.Name == "account" && account != "" {
			return "" // it reads the store
		}
	}
	for _, flag := range parsed.Selected().Flags {
		if flag.Name == "url" {
			text, _ := parsed.FlagValue(flag).(string)
			if u, err := url.Parse(text); err == nil {
				return u.Redacted() // the output may end up in a job log
			}
			return "the server"
		}
	}
	return ""
}
