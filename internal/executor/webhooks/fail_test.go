package webhooks

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/channel"
)

func TestFail_BacksOffAndDisablesAfterThreeDays(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	down := &channel.Error{Code: "http_503", Err: errors.New("secret")}
	var s subscription
	began, attempts, last := now, 0, time.Duration(0)
	for s.Disabled == "" {
		next := s.fail(down, now)
		if attempts++; attempts > 200 {
			t.Fatal("never disabled")
		}
		if pause := next.Sub(now); pause < last || pause > time.Hour {
			t.Fatalf("attempt %d: pause %v after %v", attempts, pause, last)
		} else {
			last = pause
		}
		now = next
	}
	if failed := now.Sub(began); failed < 72*time.Hour || failed > 74*time.Hour {
		t.Errorf("disabled after %v", failed)
	}
	if !strings.Contains(s.Disabled, "3 days") || !strings.Contains(s.Disabled, "http_503") || strings.Contains(s.Disabled, "secret") {
		t.Errorf("reason %q", s.Disabled)
	}
	if v := s.view(now); !v.Next.IsZero() {
		t.Errorf("a disabled webhook is tried again at %v", v.Next)
	}
}

func TestFail_HonoursRetryAfterUpToADay(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	for demanded, want := range map[time.Duration]time.Duration{10 * time.Minute: 10 * time.Minute, 400 * time.Hour: 24 * time.Hour, 0: time.Second} {
		var s subscription
		if got := s.fail(&channel.Error{Code: "rate_limited", RetryAfter: demanded}, now).Sub(now); got != want {
			t.Errorf("retry after %v: pause %v; want %v", demanded, got, want)
		}
	}
}
