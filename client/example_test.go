package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/accession/accession/client"
	"github.com/accession/accession/client/clienttest"
)

// A document goes into custody and passes the six gates.
func Example() {
	service := clienttest.NewService() // stands in for https://custody.example
	defer service.Close()
	ctx := context.Background()

	c, err := client.New(service.URL, client.WithToken(clienttest.UploadToken))
	if err != nil {
		log.Fatal(err)
	}
	document := strings.NewReader("Pump 2 was overhauled in October.")
	transfer := client.NewTransfer("harbour", client.InitiateRequest{
		Filename: "record.txt", ContentType: "text/plain", SizeBytes: document.Size(),
		Consent: client.Consent{
			Accepted: true, AgreementVersion: client.AgreementVersion, ConsentVersion: client.ConsentVersion,
			TextSHA256:       client.TextSHA256([]byte(client.AgreementText)),
			ConsentingUserID: "user-7", ConsentingUserEmail: "ada@harbour.example",
		},
	})
	uploader := client.Uploader{Client: c}
	completion, err := uploader.Upload(ctx, transfer, document)
	if err != nil {
		log.Fatal(err)
	}
	status, err := c.Follow(ctx, "harbour", completion.UploadID, client.Retry{}, func(change client.Change) {
		for _, gate := range change.Gates {
			if gate.State == client.GatePassed {
				fmt.Println("passed", gate.Name)
			}
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(status.Status)
	// Output:
	// passed integrity
	// passed quarantine
	// passed malware_scan
	// passed extraction
	// passed controlled_summary
	// passed ai_context
	// READY
}

// What the service refuses comes back with its code and the request id to quote.
func ExampleError() {
	service := clienttest.NewService()
	defer service.Close()
	c, err := client.New(service.URL, client.WithToken(clienttest.ReaderToken))
	if err != nil {
		log.Fatal(err)
	}
	_, err = c.AIContext(context.Background(), "harbour", "up_unknown")
	var refusal *client.Error
	if errors.As(err, &refusal) {
		fmt.Println(refusal.Status, refusal.Code, refusal.RequestID)
	}
	// Output: 404 upload_not_found req-1
}

// An admin issues a credential; its token is shown this once.
func ExampleClient_IssueCredential() {
	service := clienttest.NewService()
	defer service.Close()
	admin, err := client.New(service.URL, client.WithAdminToken(clienttest.AdminToken))
	if err != nil {
		log.Fatal(err)
	}
	credential, err := admin.IssueCredential(context.Background(), client.IssueRequest{OrgID: "harbour", Role: client.RoleAIReader})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(credential, len(credential.Token) > 0)
	// Output: credential cred_1 of harbour (ai_reader) true
}
