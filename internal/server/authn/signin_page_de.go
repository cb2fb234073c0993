package authn

import "fmt"

// german has the German texts of the sign-in pages by the English ones, and those of the problems
// that people meet there.
var german = map[string]string{
	"Sign in": "Anmelden",
	"If you have not signed in before, open the link of your invitation. An administrator of this server can invite you.": "Wenn Sie sich noch nie angemeldet haben, öffnen Sie den Link Ihrer Einladung. Die Verwaltung dieses Servers kann Sie einladen.",
	"Sign in with a passkey":  "Mit Passkey anmelden",
	"Sign in with a password": "Mit Passwort anmelden",
	"or":                      "oder",
	"Name":                    "Name",
	"Password":                "Passwort",
	"The passkey was not used. Try again, or choose a password below.": "Der Passkey wurde nicht benutzt. Versuchen Sie es noch einmal oder wählen Sie unten ein Passwort.",

	"Create a passkey": "Passkey anlegen",
	"Welcome, %s":      "Willkommen, %s",
	"Choose a password with at least %d characters. You sign in with it and your name, %s.":                                                                                                "Wählen Sie ein Passwort mit mindestens %d Zeichen. Sie melden sich mit ihm und Ihrem Namen an: %s.",
	"You sign in as %s, with a passkey or with a password of at least %d characters. A passkey is kept by your device or password manager; rules that require a strong sign-in accept it.": "Sie melden sich als %s an, mit einem Passkey oder mit einem Passwort von mindestens %d Zeichen. Ihr Gerät oder Passwortmanager bewahrt den Passkey auf; Regeln, die eine starke Anmeldung verlangen, lassen ihn zu.",
	"Save the password and sign in": "Passwort speichern und anmelden",

	"You are signed in": "Sie sind angemeldet",
	"You are %s of %s. This server has no pages: fermata inbox in a terminal shows the open requests. The same data as JSON:": "Sie sind %s von %s. Dieser Server hat keine Seiten: fermata inbox zeigt in einem Terminal die offenen Anfragen. Dieselben Daten als JSON:",
	"open requests":       "offene Anfragen",
	"runs":                "Läufe",
	"the API description": "die Beschreibung der API",

	"You are signed out": "Sie sind abgemeldet",
	"Sign in again":      "Erneut anmelden",
	"Your identity provider may still have a session: the next user of this browser could sign in as you.": "Ihr Identitätsanbieter hat vielleicht noch eine Sitzung: Wer diesen Browser als Nächstes benutzt, könnte sich als Sie anmelden.",

	"Not signed in": "Nicht angemeldet",
	"Start again":   "Neu beginnen",
	"Try again, or sign in with your password.": "Versuchen Sie es noch einmal oder melden Sie sich mit Ihrem Passwort an.",

	"The name or the password is wrong.":                                             "Der Name oder das Passwort ist falsch.",
	fmt.Sprintf("The password needs %d to %d characters.", minPassword, maxPassword): fmt.Sprintf("Das Passwort braucht %d bis %d Zeichen.", minPassword, maxPassword),
	"There were too many attempts to sign in as this person; wait a minute.":         "Es gab zu viele Versuche, sich als diese Person anzumelden; warten Sie eine Minute.",
	"There were too many attempts to sign in from your network; wait a minute.":      "Es gab zu viele Anmeldeversuche aus Ihrem Netz; warten Sie eine Minute.",
	"Too many people are signing in; try again.":                                     "Es melden sich gerade zu viele Personen an; versuchen Sie es noch einmal.",
	"This invitation is invalid, was used or has expired; ask for a new one.":        "Diese Einladung ist ungültig, wurde benutzt oder ist abgelaufen; bitten Sie um eine neue.",
	"This invitation was already used; ask for a new one.":                           "Diese Einladung wurde bereits benutzt; bitten Sie um eine neue.",
	"This link is invalid or has expired; restart the program to get a new one.":     "Dieser Link ist ungültig oder abgelaufen; starten Sie das Programm neu, um einen neuen zu erhalten.",
	"This sign-in was already used.":                                                 "Diese Anmeldung wurde bereits benutzt.",
	"This sign-in was not started in this browser, or it took too long.":             "Diese Anmeldung wurde nicht in diesem Browser begonnen, oder sie hat zu lange gedauert.",
	"The passkey was not accepted.":                                                  "Der Passkey wurde nicht angenommen.",
	"The passkey took too long, or was meant for something else; try again.":         "Der Passkey hat zu lange gebraucht oder war für etwas anderes bestimmt; versuchen Sie es noch einmal.",
	"The identity provider denied the sign-in.":                                      "Der Identitätsanbieter hat die Anmeldung abgelehnt.",
	"The identity provider has not verified your e-mail address.":                    "Der Identitätsanbieter hat Ihre E-Mail-Adresse nicht bestätigt.",
	"None of your groups has a role on this server; ask its operator.":               "Keine Ihrer Gruppen hat auf diesem Server eine Rolle; fragen Sie seinen Betreiber.",
	"Sign-in is temporarily unavailable.":                                            "Die Anmeldung ist vorübergehend nicht möglich.",
}
