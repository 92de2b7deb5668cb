"""Prints a letter with a document attached, as a mail program writes it."""
import sys
from email.message import EmailMessage
from email.policy import SMTP

letter = EmailMessage()
letter["From"] = "Harbour office <office@harbour.example>"
letter["To"] = "Yard <yard@harbour.example>"
letter["Subject"] = "Lamps on the north pier, and the café"
letter["Date"] = "Mon, 12 Jan 2026 09:30:00 +0000"
letter["Message-ID"] = "<note-44@harbour.example>"
letter.set_content("The lamps were cleaned in March.\nThe note is attached.\n")
letter.add_alternative("<p>The lamps were <b>cleaned</b> in March.<br>The note is attached.</p>", subtype="html")
with open(sys.argv[1], "rb") as attached:
    letter.add_attachment(attached.read(), maintype="application", filename="harbour-note.docx",
                          subtype="vnd.openxmlformats-officedocument.wordprocessingml.document")
letter.set_boundary("=_harbour")
sys.stdout.buffer.write(letter.as_bytes(policy=SMTP))
