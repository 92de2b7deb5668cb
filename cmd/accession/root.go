package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

const (
	groupDocuments    = "documents"
	groupOrganization = "organization"
	groupCare         = "care"
	groupService      = "service"
	groupMachine      = "machine"
)

// commands lists every subcommand with its group of the help. Add new ones here.
var commands = []struct {
	group string
	make  func(*App) *cobra.Command
}{
	{groupDocuments, newUploadCommand},
	{groupDocuments, newWatchCommand},
	{groupDocuments, newStatusCommand},
	{groupDocuments, newContextCommand},
	{groupDocuments, newWithdrawCommand},
	{groupDocuments, newReceiptCommand},
	{groupDocuments, newAgreementCommand},
	{groupOrganization, newOrganizationsCommand},
	{groupOrganization, newQuotaCommand},
	{groupOrganization, newCredentialsCommand},
	{groupOrganization, newRetentionCommand},
	{groupOrganization, newWebhooksCommand},
	{groupMachine, newProfileCommand},
	{groupMachine, newCompletionCommand},
	{groupCare, newStateCommand},
	{groupCare, newAuditCommand},
	{groupCare, newCanaryCommand},
	{groupCare, newRescanCommand},
	{groupCare, newResumeCommand},
	{groupCare, newFsckCommand},
	{groupCare, newKeysCommand},
	{groupService, newServeCommand},
	{groupService, newConfigCommand},
	{groupService, newDoctorCommand},
	{groupService, newBackupCommand},
	{groupService, newRestoreCommand},
	{groupService, newMigrateStoreCommand},
	{groupService, newVersionCommand},
	{"", newWorkerCommand},
	{"", newManCommand},
}

func init() { cobra.EnableCommandSorting = false } // the help keeps the order of the list

func newRootCommand(app *App) *cobra.Command {
	root := &cobra.Command{
		Use:               "accession",
		Short:             "Takes documents into custody and serves bounded, labelled, unverified context",
		Long:              `Takes documents into custody; serves bounded, labelled, unverified context.`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              noSuchCommand,

		SuggestionsMinimumDistance: 2,

		RunE: func(cmd *cobra.Command, _ []string) error {
			if asked, err := cmd.Flags().GetBool("version"); err != nil || asked {
				return errors.Join(err, app.printVersion())
			}
			return cmd.Help()
		},
	}
	root.AddGroup(
		&cobra.Group{ID: groupDocuments, Title: "Documents:"},
		&cobra.Group{ID: groupOrganization, Title: "Organization:"},
		&cobra.Group{ID: groupCare, Title: "Evidence and care, of a running service (admin):"},
		&cobra.Group{ID: groupService, Title: "Service:"},
		&cobra.Group{ID: groupMachine, Title: "This computer:"},
	)
	for _, entry := range commands {
		command := entry.make(app)
		command.GroupID = entry.group
		root.AddCommand(command)
	}
	root.SetHelpCommandGroupID(groupService)
	root.Flags().BoolP("help", "h", false, "")
	root.Flags().Bool("version", false, "")
	_ = root.Flags().MarkHidden("version") // a habit of hands; the command is what the help lists
	_ = root.Flags().MarkHidden("help")    // the last line of the help tells of it; the rest has to fit a screen
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		text := err.Error()
		if strings.Contains(text, "--token") || strings.Contains(text, "--admin-token") {
			// A value here would be visible to every process of the machine.
			text += "; a credential is never given on the command line: set " + envToken + " or " + envAdminToken + ", or name a file with --token-file or --admin-token-file"
		}
		return usagef("%s; see %s --help", text, cmd.CommandPath())
	})
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "help" {
			cmd.RunE, cmd.Run = helpOf, nil
		}
	}
	handwrittenHelp(root)
	app.completions(root)
	return root
}

// helpOf prints the help of the command that args name. Cobra's own would take another name for no name at all.
func helpOf(cmd *cobra.Command, args []string) error {
	of, rest, err := cmd.Root().Find(args)
	if err != nil {
		return err // noSuchCommand's
	}
	if len(rest) > 0 {
		return noSuchCommand(of, rest)
	}
	return of.Help()
}

// noSuchCommand is the argument check of commands that only hold others.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "see "
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "? See "
	}
	return usagef("%q is no command of %s; %s%s --help", args[0], cmd.CommandPath(), hint, cmd.CommandPath())
}

// positional checks the number of arguments; names are as in the command's Use line, optional ones come first.
func positional(optional int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= len(names)-optional && len(args) <= len(names) {
			return nil
		}
		if len(names) == 0 {
			return usagef("%s takes no arguments, only flags; write: %s", cmd.CommandPath(), cmd.UseLine())
		}
		plural := "s"
		if len(args) == 1 {
			plural = ""
		}
		return usagef("%s takes %s, not %d argument%s; write: %s", cmd.CommandPath(), strings.Join(names, " "), len(args), plural, cmd.UseLine())
	}
}

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }
