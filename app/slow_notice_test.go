package app

import (
	"bytes"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alecthomas/kong"
)

// Without a response, for example behind a firewall that drops packets, the program used to print
// nothing.
func TestSlowNotice_PrintedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told bytes.Buffer
		p := &program{err: &told}
		ctx, stop := p.noticeWhenSlow(t.Context(), "http://127.0.0.1:8080")
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

func TestSlowNotice_OnlyForRemoteCommands(t *testing.T) {
	for args, want := range map[string]string{
		"inbox --list --url http://a": "http://a", "approve r1 --url http://b": "http://b", "runs": "http://127.0.0.1:8080", "stats --url http://me:secret@c": "http://me:xxxxx@c", "version": "", "config example": "",
	} {
		parser, err := kong.New(new(commands), kong.Name("fermata"), groups, kong.Exit(func(int) {}), kong.Writers(new(bytes.Buffer), new(bytes.Buffer)))
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := parser.Parse(strings.Fields(args))
		if err != nil {
			t.Fatal(err)
		}
		if got := serverOf(parsed); got != want {
			t.Errorf("%s calls %q, want %q", args, got, want)
		}
	}
}
