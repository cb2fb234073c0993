package api

import "time"

// PushKey is the key with which browsers subscribe to notifications.
type PushKey struct {
	PublicKey string `json:"publicKey" doc:"The VAPID key of this server in base64url: applicationServerKey of PushManager.subscribe."`
}

// AddPushSubscription is a subscription of a browser, as PushSubscription.toJSON returns it.
type AddPushSubscription struct {
	Name     string   `json:"name" minLength:"1" maxLength:"200" doc:"A name for lists, such as Firefox on Linux."`
	Endpoint string   `json:"endpoint" maxLength:"2048" doc:"The URL at the push service."`
	Keys     PushKeys `json:"keys"`
}

// PushKeys are the keys of a browser.
type PushKeys struct {
	P256DH string `json:"p256dh" maxLength:"128" doc:"The public key of the browser in base64url."`
	Auth   string `json:"auth" maxLength:"64" doc:"The secret of the browser in base64url."`
}

// PushSubscription is a browser that is notified.
type PushSubscription struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Service     string    `json:"service" doc:"The host of the push service."`
	Fingerprint string    `json:"fingerprint" doc:"The SHA-256 of the endpoint in base64url. A browser finds its own subscription by it."`
	AddedAt     time.Time `json:"addedAt"`
}
