package email

import "github.com/fermata-go/fermata/channel"

var _ channel.Personal = (*Channel)(nil)

// PersonalAddress returns the linked e-mail address.
func (c *Channel) PersonalAddress(sender string) string { return sender }
