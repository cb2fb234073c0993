package api

import "time"

// Notifications says how the caller is notified.
type Notifications struct {
	SaveNotifications
	Addresses []NotificationAddress `json:"addresses" doc:"Where the caller is reached: linked accounts of channels, and browsers."`
	Channels  []string              `json:"channels" doc:"The channels of this server that reach people one by one."`
}

// SaveNotifications are the settings of a person.
type SaveNotifications struct {
	Rules []NotificationRule `json:"rules,omitempty" maxItems:"20" doc:"Rules that choose channels. The first that matches applies; without a match all channels are used."`
	Quiet *QuietHours        `json:"quiet,omitempty"`
	Away  *Absence           `json:"away,omitempty"`
}

// NotificationRule chooses channels for some notices. Empty conditions match everything.
type NotificationRule struct {
	Notices  []string `json:"notices,omitempty" enum:"notify,remind,page,tell-requester" doc:"Kinds of notices."`
	Kinds    []string `json:"kinds,omitempty" maxItems:"20" doc:"Kinds of requests, such as approval."`
	MinRisk  int      `json:"minRisk,omitempty" minimum:"0" maximum:"3" doc:"The least risk of the request."`
	Channels []string `json:"channels" maxItems:"20" doc:"Kinds of channels, such as slack. Without one the request is in the inbox only."`
}

// QuietHours delay notices until their end.
type QuietHours struct {
	Zone       string   `json:"zone" maxLength:"64" doc:"An IANA time zone, such as Europe/Zurich."`
	Days       []string `json:"days,omitempty" enum:"mon,tue,wed,thu,fri,sat,sun" maxItems:"7" doc:"The days on which they begin; every day if empty."`
	From       string   `json:"from" pattern:"^([01][0-9]|2[0-3]):[0-5][0-9]$" doc:"Local time, such as 22:00."`
	To         string   `json:"to" pattern:"^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$" doc:"Local time; on the next day if it is not after from."`
	HoldPages  bool     `json:"holdPages,omitempty" doc:"Whether pages are delayed too."`
	UrgentRisk int      `json:"urgentRisk,omitempty" minimum:"0" maximum:"3" doc:"Requests of at least this risk are sent anyway; 0 for none."`
}

// Absence is a time in which a person is not notified.
type Absence struct {
	From     time.Time `json:"from"`
	Until    time.Time `json:"until"`
	Delegate string    `json:"delegate,omitempty" maxLength:"200" doc:"Is notified instead, if they belong to the same groups and may decide. They get no rights."`
}

// NotificationAddress is where a person is reached.
type NotificationAddress struct {
	ID      string    `json:"id"`
	Channel string    `json:"channel"`
	Name    string    `json:"name,omitempty"`
	AddedAt time.Time `json:"addedAt"`
}
