package api

import "time"

// Delivery is the delivery of a notice to one address.
type Delivery struct {
	ID        string     `json:"id"`
	Request   string     `json:"request"`
	Channel   string     `json:"channel" doc:"The kind of the channel, such as slack; * is the custom function of the server's program."`
	Kind      string     `json:"kind" enum:"notify,remind,page,resolve,rerender,tell-requester"`
	State     string     `json:"state" enum:"queued,sent,seen,failed,dead,obsolete" doc:"failed is tried again, dead is not; obsolete: the request was over before it was sent."`
	Attempts  int        `json:"attempts" doc:"Failed attempts since the last success."`
	Code      string     `json:"code,omitempty" doc:"Why the last attempt failed."`
	Revision  int64      `json:"revision,omitempty" doc:"The revision of the request that the copy shows."`
	Target    string     `json:"target" doc:"The target of the route that led to the address."`
	Person    string     `json:"person,omitempty" doc:"The person to whom the address belongs."`
	Address   string     `json:"address,omitempty" doc:"The address; masked unless you are an admin."`
	NextAt    *time.Time `json:"nextAt,omitempty" doc:"When it is sent next."`
	CreatedAt time.Time  `json:"createdAt"`
	UpdatedAt time.Time  `json:"updatedAt"`
}

// LinkChannel links an account of a channel to the caller.
type LinkChannel struct {
	Token string `json:"token" minLength:"1" maxLength:"128" doc:"The token of the one-time link."`
}

// ChannelLink is an account of a channel that is linked to the caller.
type ChannelLink struct {
	ID      string    `json:"id"`
	Channel string    `json:"channel"`
	Sender  string    `json:"sender" doc:"The id of the account in the channel."`
	Name    string    `json:"name,omitempty" doc:"The name of the account in the channel."`
	At      time.Time `json:"at" doc:"When it was linked."`
	Until   time.Time `json:"until" doc:"When the link expires."`
}

// LinkOffer is what a one-time link is for.
type LinkOffer struct {
	Channel string    `json:"channel"`
	Sender  string    `json:"sender" doc:"The id of the account in the channel."`
	Name    string    `json:"name,omitempty" doc:"The name of the account in the channel."`
	Until   time.Time `json:"until" doc:"When the one-time link expires."`
	Taken   bool      `json:"taken,omitempty" doc:"Whether the account is linked to another person."`
}

// ChannelHealth counts the deliveries of a channel.
type ChannelHealth struct {
	Channel      string     `json:"channel"`
	Configured   bool       `json:"configured" doc:"Whether the server that answers has this channel."`
	Queued       int        `json:"queued"`
	Sent         int        `json:"sent"`
	Failed       int        `json:"failed" doc:"Failed ones are tried again."`
	Dead         int        `json:"dead" doc:"Dead ones are not tried again."`
	Code         string     `json:"code,omitempty" doc:"Why the newest failed delivery failed."`
	LastSentAt   *time.Time `json:"lastSentAt,omitempty"`
	LastFailedAt *time.Time `json:"lastFailedAt,omitempty"`
	NextAt       *time.Time `json:"nextAt,omitempty" doc:"The next attempt of a failed delivery."`
}
