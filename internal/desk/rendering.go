package desk

import (
	"regexp"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/ident"
)

// Rendering is what a channel put on a person's screen.
type Rendering struct {
	// Hash is the [RenderingHash] of exactly the text that was put on the screen.
	Hash string `json:"hash"`
	// Channel is where it was shown, such as terminal. Template is what rendered it: a name, "@"
	// and a version.
	Channel  string `json:"channel"`
	Template string `json:"template"`
	// Visible is [VisibleAll], [VisiblePart], or "" if it is unknown how much was on the screen.
	Visible string `json:"visible,omitempty"`
	// Text is the text with the hash, or "". The document does not contain it: see
	// [Change.RenderedText].
	Text string `json:"-"`
	// By is who opened it, and At when it was first recorded with this hash. Rev is the revision of
	// the request, and Shown its digest.
	By    string    `json:"by"`
	At    time.Time `json:"at"`
	Rev   int64     `json:"rev"`
	Shown string    `json:"shown"`
}

// How much of a rendering was on the screen, as the client observed it.
const (
	VisibleAll  = "all"  // every line was on the screen, and nothing was folded
	VisiblePart = "part" // a line was folded, or was not on the screen
)

// RenderingHash returns "sha256:" and the SHA-256 of a text in hex. The text is UTF-8, with a
// newline between lines, and without styles, colors and control sequences.
func RenderingHash(text string) string { return ident.TextHash(text) }

const (
	// maxRenderings is how many renderings of one person a document keeps, and of how many the text
	// is kept. The audit log has all of them.
	maxRenderings = 20
	// maxRenderingText is the longest text, in bytes, that is kept.
	maxRenderingText = 64 << 10
)

var (
	validRenderingHash = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	validChannel       = regexp.MustCompile(`^[a-z][a-z0-9-]{0,49}$`)
	validTemplate      = regexp.MustCompile(`^[a-z][a-z0-9/.-]{0,49}@[a-z0-9.-]{1,49}$`)
)

func (d *update) checkRendering(r Rendering) error {
	switch {
	case !validRenderingHash.MatchString(r.Hash):
		return d.refuse(ErrInvalidValue, "the hash of a rendering is sha256: and 64 hex digits")
	case !validChannel.MatchString(r.Channel):
		return d.refuse(ErrInvalidValue, "the channel of a rendering is a name of lower-case letters, digits and dashes, such as terminal")
	case !validTemplate.MatchString(r.Template):
		return d.refuse(ErrInvalidValue, "the template of a rendering is a name and a version, such as inbox@1")
	case r.Visible != "" && r.Visible != VisibleAll && r.Visible != VisiblePart:
		return d.refuse(ErrInvalidValue, "visible is all or part")
	case len(r.Text) > maxRenderingText:
		return d.refuse(ErrInvalidValue, "the text of a rendering is too long to be kept: send its hash only")
	case r.Text != "" && RenderingHash(r.Text) != r.Hash:
		return d.refuse(ErrInvalidValue, "the text of a rendering does not have its hash")
	case d.from.Seen.Digest == "":
		return d.refuse(ErrInvalidValue, "a rendering needs the digest of the request that was rendered")
	}
	return nil
}

// recordRendering adds a rendering of the current request. The event is for the audit log only:
// otherwise renderings would push other events out of the document.
func (d *update) recordRendering(r Rendering) {
	r.By, r.At, r.Rev, r.Shown = d.from.Actor.ID, d.now, d.r.Rev, d.r.Digest()
	own, first := 0, -1
	for i, old := range d.r.Renderings {
		if old.By != r.By {
			continue
		}
		if old.Hash == r.Hash && old.Channel == r.Channel && old.Template == r.Template && old.Visible == r.Visible && old.Shown == r.Shown {
			return
		}
		if own++; first < 0 {
			first = i
		}
		if old.Hash == r.Hash && old.At.Before(r.At) {
			r.At = old.At // another report of the same screen, such as with the decision
		}
	}
	if own < maxRenderings {
		d.renderedText = r.Text
	}
	if own >= maxRenderings {
		d.r.Renderings = slices.Delete(d.r.Renderings, first, first+1)
	} else if len(d.r.Renderings) >= maxItems {
		d.r.Renderings = slices.Delete(d.r.Renderings, 0, 1)
	}
	d.r.Renderings = append(d.r.Renderings, r)
	actor := d.from.Actor
	d.events = append(d.events, Event{Rev: d.r.Rev + 1, At: d.now, Type: EventRendered, By: actor.ID, Kind: actor.Kind, Auth: actor.Auth, Via: d.from.Via, Text: "opened it", Detail: map[string]string{"rendering": r.Hash}})
}

// withRendering adds the rendering that the actor names to the detail of an event.
func (d *update) withRendering(detail map[string]string) map[string]string {
	if hash := d.from.Seen.Rendering; hash != "" {
		detail["rendering"] = hash
	}
	return detail
}

// isRendered reports whether a rendering of the current request has the hash; "" names none.
func (d *update) isRendered(hash string) bool {
	return hash == "" || slices.ContainsFunc(d.r.Renderings, func(r Rendering) bool { return r.Hash == hash && r.Shown == d.r.Digest() })
}

// Rendering returns the rendering that a person saw last under a hash: their own or, if they have
// none, that of another person, for a channel that several people read.
func (r Request) Rendering(hash, person string) (Rendering, bool) {
	var found Rendering
	for _, one := range r.Renderings {
		if one.Hash == hash && (one.By == person || found.By != person) {
			found = one
		}
	}
	return found, found.Hash != ""
}
