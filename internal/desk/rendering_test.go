package desk_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
)

func screen(text string) *desk.Rendering {
	return &desk.Rendering{Hash: desk.RenderingHash(text), Channel: "terminal", Template: "inbox@1"}
}

// A malformed rendering is refused, and changes nothing.
func TestView_ChecksTheRendering(t *testing.T) {
	for name, change := range map[string]func(v *desk.View){
		"no hash":     func(v *desk.View) { v.Rendering.Hash = "" },
		"plain hash":  func(v *desk.View) { v.Rendering.Hash = strings.TrimPrefix(v.Rendering.Hash, "sha256:") },
		"no channel":  func(v *desk.View) { v.Rendering.Channel = "" },
		"no version":  func(v *desk.View) { v.Rendering.Template = "inbox" },
		"other text":  func(v *desk.View) { v.Rendering.Template = "inbox@1\nx" },
		"no question": func(v *desk.View) { v.Seen.Digest = "" },
	} {
		w := open(t, actionSpec())
		view := desk.View{From: w.from("ann"), Rendering: screen("x")}
		change(&view)
		if _, err := desk.Apply(w.request, view, w.env()); !errors.Is(err, desk.ErrInvalidValue) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A document keeps the latest renderings of each person; one person cannot push out those of
// others.
func TestView_KeepsTheLatestRenderingsOfEachPerson(t *testing.T) {
	w := open(t, actionSpec())
	w.apply(desk.View{From: w.from("bob"), Rendering: screen("bob's")})
	for i := range 50 {
		w.apply(desk.View{From: w.from("ann"), Rendering: screen(fmt.Sprint(i))})
	}
	if n := len(w.request.Renderings); n != 21 || w.request.Renderings[0].By != "bob" || w.request.Renderings[20].Hash != screen("49").Hash {
		t.Errorf("%d renderings: %+v", n, w.request.Renderings)
	}
	for _, e := range w.request.Log {
		if e.Type == desk.EventRendered {
			t.Errorf("the log of the document has %+v", e)
		}
	}
	for _, n := range w.notices {
		if n.Kind == desk.NoticeRerender {
			t.Errorf("notice %+v", n)
		}
	}
}

// A screen that is reported again, such as when all of it was read, was opened the first time.
func TestView_ScreenThatIsReportedAgainKeepsItsTime(t *testing.T) {
	w := open(t, actionSpec())
	w.apply(desk.View{From: w.from("ann"), Rendering: screen("x")})
	opened := w.now
	w.now = w.now.Add(time.Minute)
	w.apply(desk.View{From: w.from("bob"), Rendering: screen("x")})
	read := screen("x")
	read.Visible = desk.VisibleAll
	w.apply(desk.View{From: w.from("ann"), Rendering: read})
	last, _ := w.request.Rendering(read.Hash, "ann")
	other, _ := w.request.Rendering(read.Hash, "bob")
	if !last.At.Equal(opened) || last.Visible != desk.VisibleAll || !other.At.Equal(w.now) {
		t.Errorf("ann %+v, bob %+v, opened at %s", last, other, opened)
	}
}

// A rendering of an earlier version does not count for a decision.
func TestApprove_RenderingMustBeOfTheCurrentVersion(t *testing.T) {
	w := open(t, actionSpec())
	w.apply(desk.View{From: w.from("ann"), Rendering: screen("x")})
	w.apply(desk.ApproveEdited{From: w.from("bob"), Args: []byte(`{"table":"users","limit":50}`)})
	from := w.from("ann")
	from.Seen.Rendering = screen("x").Hash
	if _, err := desk.Apply(w.request, desk.Approve{From: from}, w.env()); !errors.Is(err, desk.ErrChanged) {
		t.Errorf("rendering of the version before the edit: %v", err)
	}
	w.apply(desk.View{From: w.from("ann"), Rendering: screen("y")})
	from = w.from("ann")
	from.Seen.Rendering = screen("y").Hash
	w.apply(desk.Approve{From: from})
	if w.request.State != desk.StateDecided {
		t.Errorf("state %s", w.request.State)
	}
}
