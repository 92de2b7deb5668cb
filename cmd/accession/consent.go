package main

import (
	"net/mail"
	"os"

	"github.com/spf13/cobra"

	"github.com/accession/accession/client"
)

// consentFlags are the flags and variables of the consent.
type consentFlags struct {
	accept                                    bool
	user, email, agreement, version, textFile string
}

func (c *consentFlags) register(app *App, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&c.accept, "accept", false, "the person named below agrees to the agreement (see accession agreement)")
	flags.StringVar(&c.user, "consent-user-id", app.Getenv("ACCESSION_CONSENT_USER_ID"), "who agrees ($ACCESSION_CONSENT_USER_ID)")
	flags.StringVar(&c.email, "consent-email", app.Getenv("ACCESSION_CONSENT_EMAIL"), "and their e-mail address ($ACCESSION_CONSENT_EMAIL)")
	flags.StringVar(&c.textFile, "consent-text", app.Getenv("ACCESSION_CONSENT_TEXT"), "file with the text agreed to; default: accession agreement ($ACCESSION_CONSENT_TEXT)")
	flags.StringVar(&c.agreement, "agreement-version", app.Getenv("ACCESSION_CONSENT_AGREEMENT_VERSION"), "version of that agreement ($ACCESSION_CONSENT_AGREEMENT_VERSION)")
	flags.StringVar(&c.version, "consent-version", app.Getenv("ACCESSION_CONSENT_VERSION"), "version of its AI-readable use consent ($ACCESSION_CONSENT_VERSION)")
}

// consent is what the flags say; the time is set when the transfer begins.
func (c *consentFlags) consent() (client.Consent, error) {
	if !c.accept {
		return client.Consent{}, usagef("nobody agreed: read accession agreement, then add --accept")
	}
	if c.user == "" || c.email == "" {
		return client.Consent{}, usagef("who agrees? give --consent-user-id and --consent-email")
	}
	if address, err := mail.ParseAddress(c.email); err != nil || address.Address != c.email {
		return client.Consent{}, usagef("--consent-email %q is no e-mail address: write it like ada@harbour.example", c.email)
	}
	text, agreement, version := []byte(client.AgreementText), client.AgreementVersion, client.ConsentVersion
	if c.textFile != "" {
		var err error
		if text, err = os.ReadFile(c.textFile); err != nil {
			return client.Consent{}, usagef("consent text cannot be read: %v", err)
		}
		if c.agreement == "" || c.version == "" {
			return client.Consent{}, usagef("--consent-text is a text of your own: give its --agreement-version and --consent-version")
		}
	}
	if c.agreement != "" {
		agreement = c.agreement
	}
	if c.version != "" {
		version = c.version
	}
	return client.Consent{
		Accepted: true, AgreementVersion: agreement, ConsentVersion: version, TextSHA256: client.TextSHA256(text),
		ConsentingUserID: c.user, ConsentingUserEmail: c.email,
	}, nil
}
