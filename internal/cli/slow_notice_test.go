package cli

import (
	"bytes"
	"net/http/httptrace"
	"testing"
	"testing/synctest"
	"time"
)

// Without a response, for example behind a firewall that drops packets, the program used to print
// nothing.
func TestSlowNotice_PrintedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told bytes.Buffer
		p := &Program{Err: &told}
		ctx, stop := p.NoticeWhenSlow(t.Context(), "http://127.0.0.1:8080")
		trace := httptrace.ContextClientTrace(ctx)
		trace.GetConn("127.0.0.1:8080")
		time.Sleep(slowNoticeAfter - 1)
		trace.GotFirstResponseByte()
		time.Sleep(time.Hour)
		if told.Len() > 0 {
			t.Errorf("of a server that responds: %s", &told)
		}
		for range 2 {
			trace.GetConn("127.0.0.1:8080")
			time.Sleep(slowNoticeAfter)
			synctest.Wait()
		}
		if want := "fermata: no response from http://127.0.0.1:8080 yet; still waiting (Ctrl-C to stop)\n"; told.String() != want {
			t.Errorf("printed %q, want %q", &told, want)
		}
		stop()
	})
}
