package web

// accountTexts are the texts about sign-in, and of the administration page.
var accountTexts = translation{
	"passkeys.title":       "Passkeys",
	"passkeys.none":        "A passkey signs you in without a password, with the lock of your device. Rules that require a strong sign-in accept it.",
	"passkeys.created":     "Added",
	"passkeys.used":        "last used",
	"passkeys.unused":      "not used yet",
	"passkeys.synced":      "on several devices",
	"passkeys.remove":      "Remove",
	"passkeys.remove.one":  "Remove %s",
	"passkeys.unsupported": "Browsers do not create passkeys for an IP address. Open this server by its host name.",
	"passkeys.again":       "To change your passkeys, sign in again: with a passkey, if you have one.",
	"passkeys.signin":      "Sign in again",
	"passkeys.script":      "Passkeys need JavaScript.",
	"passkeys.failed":      "The passkey was not created. Try again.",
	"passkeys.name":        "Name",
	"passkeys.name.hint":   "To recognize it by. Defaults to the kind of your device.",
	"passkeys.add":         "Add a passkey",
	"note.passkey":         "The passkey was added.",
	"note.passkeyremoved":  "The passkey was removed.",
}
