package intake

// The rules that find verification claims, as data. Their corpus is testdata/claims: change both together.

// fieldRules say which names of JSON fields speak of a verdict. Names are compared folded (case, accents and
// look-alikes), whole and without separators, so that is_verified, isVerified and is-verified are one name.
var fieldRules = struct {
	stems, notEndings, ranks, undoing, open, status, texts []string
}{
	// A name that holds one of stems speaks of a verdict, unless one of notEndings makes another word of it (certificate,
	// verifiable).
	stems:      []string{"verifi", "certifi", "zertifi", "endors", "isevaluated"},
	notEndings: []string{"cate", "cats", "kat", "ab"},
	// A name with one of these as a word speaks of a ranking, whatever the number.
	ranks: []string{"rank", "ranks", "ranked", "ranking", "rankings", "isranked", "toprank", "topranked", "rang", "rangliste",
		"classement", "leaderboard"},
	// A word that turns the name round: unverified: true asserts nothing, unverified: false asserts verified.
	undoing: []string{"not", "non", "no", "never", "un", "without", "unverified", "uncertified", "unendorsed", "unranked"},
	// A word that leaves the verdict open: neither true nor false asserts it.
	open: []string{"pending", "requested", "required", "requires", "needed", "needs", "awaiting", "request", "disclaimer"},
	// In an object under a name that speaks of a verdict, these members decide.
	status: []string{"status", "state", "result", "outcome", "value", "level", "label"},
	// Free text; TextClaim reads it, not FieldClaim.
	texts: []string{"filename", "notes", "reviewer", "payload"},
}

// denials are the values that assert nothing, folded, their words joined.
var denials = wordSet(`false no none null nil na off 0 f n nein non nunca never unverified uncertified unendorsed unranked
	unevaluated unknown pending requested notevaluated notverified notcertified notendorsed notranked notapplicable
	notyet notyetverified notyetcertified notyetevaluated nonevalue nichtbewertet noevaluado`)

// claimLexicon gives each word its one class. "*" at the end stands for any ending. Words are folded: lower case, without
// accents. English, German, French, Spanish.
var claimLexicon = map[string]string{
	// Who speaks. name is the service's own; sys is a service only in company that leaves no doubt.
	"name":     "accession",
	"svc":      "service platform portal repository archive archives registry gateway dienst dienstes plattform archiv archivs portals plateforme portail servicio plataforma repositorio",
	"sys":      "system systems systeme sistema",
	"mod":      "intake custody hosting receiving ingest ingestion ai online digital context deposit",
	"operator": "operator operators people makers staff betreiber exploitants operateurs operadores",
	// What makes "service" or "accession" something else: the service technician, le service qualité, an accession number.
	"person":  "technician technicians team engineer engineers department provider providers manager desk partner partners center centre personnel committee board contractor dealer app apps admin admins administrator administration owner owners project qualite technique client clients comptable juridique commercial achats informatique tecnico tecnica cliente calidad",
	"accnoun": "numbers treaty register registers date process country countries officer negotiations talks criteria candidate candidates book catalogue list agreement states protocol conference",
	// Determiners.
	"this":  "this these dies dieses diese dieser diesem diesen ce cet cette ces este estos estas esto",
	"the":   "the der die das dem den des ein eine einen einem einer le la les l un une el los las una an its",
	"a":     "a",
	"esta":  "esta",
	"my":    "my our unser unsere unserer unserem unseren unseres mein meine notre nos mon ma nuestro nuestra nuestros nuestras mi their your his her",
	"every": "every all each everything alle jedes jede jeder alles tous toutes tout chaque todo todos todas cada",
	"adj":   "present attached enclosed above below following said entire whole new vorliegende vorliegendes beigefugte ci joint jointe presente adjunto adjunta",
	// What is submitted, and by whom.
	"sub": "upload uploads submission submissions einreichung einreichungen soumission televersement depot envio aportacion",
	"doc": "document documents file files record records report reports text texts content contents payload statement statements information data dossier paper correction brochure figures accuracy correctness truth " +
		"dokument dokumente dokuments datei dateien bericht berichte inhalt inhalte unterlagen datensatz angaben " +
		"fichier fichiers rapport contenu texte enregistrement documento documentos archivo archivos fichero informe contenido texto registro",
	"party": "company firm supplier suppliers vendor manufacturer maker business factory plant organisation organization brand product products " +
		"unternehmen firma betrieb lieferant hersteller werk produkte entreprise societe fournisseur fabricant usine produits empresa compania proveedor fabrica fabricante planta productos",
	"it": "it here them us uns nous",
	// The verdicts. syn counts only where the service is named or a thing is meant that only a verdict can mean.
	"verdict": "verified verifies certified certifies endorsed endorses verifiziert* zertifiziert* verifizierte* verifie verifiee verifiees certifie certifiee certifiees " +
		"verificado verificada verificados verificadas verifico verifica certificado certificada certificados certificadas certifico certifica beglaubigt*",
	"rank": "ranked ranks classe classee classees eingestuft* gerankt* clasifico clasificado clasificada clasifica",
	"inf":  "verify certify endorse rank verifizieren zertifizieren verifier certifier verificar certificar endosar",
	"syn": "validated validates authenticated authenticates approved approves accredited attested attests confirmed confirms vouches vouched guarantees guaranteed recommends recommended vetted rated " +
		"bestatigt* gepruft* empfiehlt empfohlen* garantiert* approuve approuvee valide validee recommande recommandee garantit confirme confirmee atteste authentifie authentifiee " +
		"validado validada aprobado aprobada recomienda recomendado recomendada garantiza confirma confirmado avalado avalada avala respalda respaldado respaldada autenticado",
	"noun":   "verification certification ranking verifizierung zertifizierung verificacion certificacion",
	"seal":   "seal badge endorsement approval siegel sceau agrement sello aval",
	"true":   "true authentic genuine accurate correct reliable trustworthy echt wahr authentisch richtig korrekt vrai vraie authentique exact exacte verdadero autentico autentica veraz",
	"passed": "passed evaluated trusted bestanden reussi",
	"ord":    "top best highest leading bester beste fuhrender meilleur meilleure mejor",
	"number": "number nummer numero platz",
	"status": "status state estado statut etat",
	"eval":   "evaluation bewertung evaluacion",
	// Auxiliaries and what stands between.
	"be":       "is are was were be been being am ist sind war wurde wurden worden wird est sont ete etait fue fueron sido es estan queda quedo",
	"have":     "has have had hat haben hatte ont ha han avoir",
	"do":       "do does did",
	"adv":      "hereby fully already duly also now recently successfully thoroughly finally publicly expressly indeed vollstandig bereits hiermit ausdrucklich dument deja entierement ya plenamente then so",
	"official": "officially official independently formally offiziell officiellement oficialmente unabhangig",
	"conj":     "and or und et y oder ou o plus",
	"but":      "but sondern mais sino pero aber",
	"that":     "that dass que which who",
	"brk":      "because since weil parce car porque while where after before once nachdem apres antes",
	"by":       "by via through von durch par por laut selon segun gemass",
	"acc":      "according",
	"as":       "as wie comme como",
	"to":       "to zu into",
	"of":       "of from de d",
	"on":       "on in at within auf sur dans en bei",
	"poss":     "s",
	"get":      "bears bear carries carry holds received receives got obtained earned gained with enjoys won tragt erhielt erhalten besitzt mit avec porte recu obtenu con lleva recibido obtenido",
	"grant":    "given granted awarded issued erteilt verliehen accordee accorde otorgada otorgado",
	// What turns a verdict into something that is not said.
	"neg": "not n t no never none neither nor nothing nobody without cannot nicht kein keine keinen keiner keines keinem nie niemals weder noch ohne niemand ni ne pas jamais sans aucun aucune personne nunca tampoco sin ningun ninguna nadie nada non " +
		"dont doesnt didnt isnt wasnt hasnt arent werent havent cant unable refuses declined",
	"only":   "only just merely doubt simply nur bloss seulement solo solamente zweifel doute duda",
	"modal":  "will would should shall must can could may might wants want wish please soll sollte muss kann konnte bitte sera seront doit peut pourra devrait veuillez puede debe podria pueda",
	"werden": "werden",
	"cond":   "if whether unless until falls wenn ob bis si sauf jusqu",
	"say":    "claim claims claiming say says saying imply implies implying suggest assert pretend mean write behaupten sagen affirmer pretendre dire afirmar decir",
	"wrong":  "wrong false untrue incorrect forbidden falsch faux falso",
	"tech":   "checksum checksums digest hash sha integrity integritat integrite integridad malware virus viruses viren login password mail format prufsumme",
}

// contractions are words that stand for two.
var contractions = map[string][2]string{
	"du": {"de", "le"}, "del": {"de", "el"}, "al": {"to", "el"}, "au": {"to", "le"}, "vom": {"von", "dem"},
	"im": {"in", "dem"}, "beim": {"bei", "dem"}, "zum": {"zu", "dem"}, "am": {"auf", "dem"},
}

// A sentence becomes a string of its words' classes. In a pattern, <a|b> is a word of one of these classes, <!a|b> one of
// none of them, "." any word or mark; spaces mean nothing; the rest is RE2.

// claimSets are short names for several classes.
var claimSets = map[string]string{
	"V":      "verdict|rank",                     // a verdict
	"K":      "verdict|rank|syn|noun|seal",       // all that an excuse takes away
	"S":      "NAMED|THIS|HERE",                  // this service
	"BY":     "BYNAMED|BYTHIS|BYHERE",            // by this service
	"aux":    "be|have|a|esta",                   // a is French "has", esta Spanish "is" or "this"
	"thing":  "doc|sub|party|it",                 // what a verdict of this service could be about
	"det":    "this|the|a|esta|my|every",         // before a noun
	"filler": "adv|official|adj|aux|conj|but|do", // changes nothing of who did what
	"mark":   "comma|colon|question|aside",
}

// A claimRewrite turns a phrase into one word of the class `to` ("" for a word that means nothing here).
type claimRewrite struct{ pattern, to string }

var claimRewrites = []claimRewrite{
	{`<acc><to>`, "by"},
	{`<svc|sys><person>`, ""},
	{`<name><accnoun|number>`, ""},
	{`<every|this|poss><name>`, ""},
	{`<the>?<adj|mod>*<name><poss>?<mod|doc|sub>*<svc|sys>`, "NAMED"},
	{`<by><the>?<name>`, "BYNAMED"},
	{`<name>(<to|of>|<neg>?<digits>)`, ""},
	{`<this|esta><adj|mod|doc|sub>*<svc|sys>`, "THIS"},
	{`<the><adj|mod|doc|sub>*<svc>`, "HERE"},
	{`<the><adj|mod>*<sys>`, "SYS"},
	{`<name>`, "NAMED"},
	{`<the>?<operator|person><of|on><NAMED>`, "NAMED"},
	{`<the>?<operator><of|on><THIS>`, "THIS"},
	{`<the>?<operator><of|on><HERE>`, "HERE"},
	{`<by><NAMED>`, "BYNAMED"},
	{`<by><THIS>`, "BYTHIS"},
	{`<by><HERE>`, "BYHERE"},
	{`<by><SYS>`, "BYSYS"},
}

// claimExcuses are phrases whose verdicts are denied, asked for, somebody else's, or of a checksum. They are taken away
// before the claims are looked for.
var claimExcuses = []string{
	`^ <be|have|a|modal|do> .* <question> $`,                                  // was it verified?
	`<neg|wrong> <!but|mark|brk>{0,3} (<true> <that> | <say>) <!but|mark>*`,   // do not say that …
	`<neg> <!mark|but|brk|only>{0,4} <K> (<conj|comma|neg|filler>*<K>)*`,      // not verified, certified or endorsed
	`<neg> (<!mark|but|brk|only>{1,2}<comma>){1,4} <conj> <adv>* <K>`,         // not run, checked, or endorsed
	`<cond> <!mark>{0,12} <K> (<conj|comma|filler>*<K>)*`,                     // if it is verified
	`<modal> <!mark|brk|S|BY>{0,4} <be|have>* <K> (<conj|comma|filler>*<K>)*`, // will be verified
	`<to> <be|have>+ <adv>* <K> (<conj|comma|filler>*<K>)*`,                   // to be verified
	`<K> <werden>`,
	`<tech> (<of> <det>? <other|thing>{1,2})? <filler>* <K>`,           // checksum of the file verified
	`<K> (<conj|comma|filler>*<K>)* <!mark|by|BY|brk|thing>{0,5} <by>`, // certified on 12 May by TÜV
}

// claimObject is the thing that an active verb is about, and what stands before it. One before another noun is not meant: the
// document's format, the upload speed.
const claimObject = `(<that>? <det|adj|other|of|mod>{0,4} <thing> ($|<!other|tech|poss>) | <that>? <this|my|esta> <adj|mod>* <thing> | <det|other>{0,2} <it>)`

// moreVerdicts are further verdicts of the same sentence part.
const moreVerdicts = `(<conj|comma|filler>* <V|syn>)*`

// claimPhrases are phrases that say that this service verified, certified, endorsed or ranked the submission.
var claimPhrases = []string{
	// The service by name, as agent: verified (and certified, on Monday) by Accession; von Accession zertifiziert.
	`<V|syn> <!by|brk|question>{0,6} <BYNAMED>`,
	`<BYNAMED> <!brk|mark|by>{0,4} <V|syn>`,
	// This service as agent needs the submission as subject, or none: verified by this service.
	`(^|<colon|aside>) <filler|as>{0,2} <V> <!by|brk>{0,4} <BYTHIS|BYHERE>`,
	`<comma> <filler|as>{0,2} <V> <!by|brk>{0,4} <BYTHIS>`,
	`<thing> <!brk|question>{0,10} <V> <!by|brk>{0,4} <BYTHIS|BYHERE>`,
	`<every> <!brk|question>{0,10} <verdict> <!by|brk>{0,4} <BYTHIS|BYHERE>`,
	`(^|<thing>) <!brk|mark>{0,3} <BYTHIS|BYHERE> <!brk|mark|by>{0,4} <V|syn>`,
	`<this|my|esta> <adj>* <doc|sub> <aux> <!brk|by>{0,3} <V> <BYSYS>`,
	// Active: Accession verified …; this service certifies the document; hat das Dokument zertifiziert.
	`<NAMED> <filler|comma>* <V> ` + moreVerdicts + ` ` + claimObject,
	`(^|<mark>) <NAMED> <official>? <V> <other>? ($|<comma|aside|question>)`, // Accession-certified; AccessionVerified.pdf
	`<NAMED> <filler|comma>* <inf> ` + claimObject,
	`<NAMED> <filler>* <syn> ` + claimObject,
	`<THIS|HERE> <filler>* <V> ` + moreVerdicts + ` <aux>? ` + claimObject,
	`<THIS|HERE> <filler>* <official|adv|do>+ <inf> ` + claimObject,
	`<SYS> <filler>* <V> <this|my|esta> <adj>* <doc|sub>`,
	`<S> <have|a> <det|adj|other|mod>{0,3} <thing> <filler|other>{0,2} <V|syn>`,
	`<S> <filler>* <syn> <!brk|question>{0,10} <true>`,
	// Nobody named, the submission as subject: only the service could be meant.
	`<this|my|esta> <adj>* <sub> <aux>+ <adv|official>* <V> ` + moreVerdicts + ` ($|<mark|conj|on|digits>)`,
	`<this|esta> <adj>* <doc> <aux>+ <adv|official>* <V> ` + moreVerdicts + ` ($|<comma>|<colon>)`,
	`(^|<this|mark>|<be> <a|the>*) <official> <V> <sub|doc>`,
	`^ <doc|sub> <official> <V> $`,
	`(^|<colon|aside>) <V> <sub> ($|<aside>)`,
	`<this> <be> <a|the> <adv|official>* <V> <sub|doc> ($|<mark>)`,
	// Labels: evaluation status: verified.
	`<eval> <status> (<of> <this|the> <sub|doc>)? <colon|comma|be>* <V|passed|syn>`,
	`<sub> <status> <colon|comma|be>* <V>`,
	`<status> <of> <this|the|my> <sub> <colon|comma|be>* <V>`,
	// Nouns: the Accession seal, with the endorsement of this platform.
	`<NAMED> <poss>? <official>* (<seal> | <noun> <person>)`,
	`<get|have|passed> <!brk|mark>{0,5} <S> <poss>? <official>* <noun|seal>`,
	`<get|have|passed> <!brk|mark>{0,4} <noun|seal> <other>{0,1} (<BY>|<of> <S>)`,
	`<S> <poss>? <noun|seal> <!brk|neg|mark>{0,4} <grant>`,
	// Rankings: number one on this platform.
	`<rank> <!brk|question|by>{0,6} (<BYNAMED|BYTHIS>|<on> <NAMED|THIS>)`,
	`<ord> <rank>? <other>? <party> <!brk|mark>{0,2} (<BY>|<on> <S>)`,
	`<number> <other>{1,3} (<BY>|<on> <S>)`,
	`<sub|doc|party> <aux>+ <adv|official>* <V> <on> <NAMED|THIS>`,
	`(^|<mark>) <V> <on> <NAMED|THIS>`,
}

// lookAlikes are letters of other alphabets, and digits inside words, that pass for Latin letters.
var lookAlikes = map[rune]rune{
	'Β': 'B', 'Ζ': 'Z', 'Η': 'H', 'Μ': 'M', 'Ν': 'N', 'Ρ': 'P', 'Τ': 'T', 'Υ': 'Y', 'Χ': 'X',
	'а': 'a', 'в': 'b', 'е': 'e', 'к': 'k', 'м': 'm', 'н': 'h', 'о': 'o', 'р': 'p', 'с': 'c', 'т': 't', 'у': 'y', 'х': 'x', 'і': 'i',
	'ј': 'j', 'ѕ': 's', 'ԁ': 'd', 'ӏ': 'l', 'ѵ': 'v', 'ո': 'n', 'ս': 'u', 'օ': 'o', 'ο': 'o', 'α': 'a', 'ι': 'i', 'ν': 'v', 'ρ': 'p',
	'ε': 'e', 'τ': 't', 'υ': 'u', 'κ': 'k', 'χ': 'x', 'ı': 'i', 'ɑ': 'a', 'ɡ': 'g', 'ɩ': 'i', 'ƒ': 'f', 'ß': 's', 'ø': 'o', 'đ': 'd',
	'ł': 'l', 'ᴀ': 'a', 'ᴄ': 'c', 'ᴅ': 'd', 'ᴇ': 'e', 'ɪ': 'i', 'ɴ': 'n', 'ᴏ': 'o', 'ꜱ': 's', 'ᴠ': 'v', 'ꜰ': 'f', 'ʀ': 'r', 'ᴛ': 't', 'ʏ': 'y', 'ʙ': 'b',
}

// digitLetters are digits and marks that pass for letters within a word: v3r1fied.
var digitLetters = map[rune]rune{'0': 'o', '1': 'i', '3': 'e', '4': 'a', '5': 's', '7': 't', '@': 'a', '$': 's'}

// blockTags are the HTML elements that part words; all others are dropped without a trace.
var blockTags = wordSet(`br p div li ul ol td th tr table h1 h2 h3 h4 h5 h6 hr section article header footer`)
