package slack

import (
	"strings"

	"github.com/fermata-go/fermata/channel"
)

var _ channel.Personal = (*Channel)(nil)

// PersonalAddress returns the user of a linked account, TEAM/USER, for direct messages.
func (c *Channel) PersonalAddress(sender string) string {
	_, user, _ := strings.Cut(sender, "/")
	return user
}
