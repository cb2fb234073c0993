package conversations

import (
	"context"
	"fmt"

	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
)

// speaker is the user that a call is for.
type speaker struct {
	account, user string
	// by is the name of the API key that speaks for the user, and via the channel for audit
	// records; "" if the user speaks.
	by, via string
}

// speakerOf returns the caller, or the end user that a frontend names. location is the field with
// the end user.
func speakerOf(ctx context.Context, endUser, location string) (speaker, error) {
	me := endpoint.Principal(ctx)
	switch {
	case !me.SpeaksForUsers() && endUser != "":
		return speaker{}, problems.New("forbidden", "only an API key with the role %s may speak for an end user", authn.RoleFrontend)
	case !me.SpeaksForUsers():
		return speaker{account: me.Account, user: me.ID}, nil
	case !authn.IsUserName(endUser):
		return speaker{}, badField(location, "name the end user: a text without invisible characters and characters that imitate others")
	}
	return speaker{account: me.Account, user: endUser, by: me.ID, via: fmt.Sprintf("conversation by=%s %s", me.ID, me.Auth.Via())}, nil
}

// sees reports whether a conversation of the user is visible: a frontend sees only those that it
// has begun, and the user sees all.
func (s speaker) sees(by string) bool { return s.by == "" || s.by == by }

// sign adds the speaker to a message.
func (s speaker) sign(msg dialog.Message) dialog.Message {
	msg.Actor, msg.By, msg.Via = s.user, s.by, s.via
	return msg
}
