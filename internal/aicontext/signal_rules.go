package aicontext

// The rules that find signals, as data. testdata/signals.tsv is their corpus: change both together.

// instructionRules find text that addresses an AI reader rather than a person. A phrase is a row of steps in order; a
// step lists its alternatives with |, "*" at a word's end (not in the first step) stands for any ending. Up to `gap` other words may stand between
// two steps, never the end of a sentence. Words are compared in lower case, without accents or look-alike letters.
var instructionRules = []instructionRule{
	// override: drop the instructions that the reader has.
	{"override", "ignore|disregard|forget|bypass|override|overrule|neglect|skip  previous|prior|preceding|earlier|above|existing|current|original|your|system|initial|other|foregoing  instruction*|prompt*|direction*|directive*|guideline*|guardrail*|programming|command*", 3},
	{"override", "ignore|disregard|forget  everything|anything|all  above|before|previously|prior|earlier", 4},
	{"override", "do  not  follow|obey  your|system|previous|prior|original  instruction*|prompt*|rules|guideline*", 3},
	{"override", "ignoriere|ignorieren|ignorier|vergiss|vergessen|missachte|missachten|ubergehe  vorherige*|vorige*|bisherige*|fruhere*|obige*|vorangegangene*|vorstehende*|deine*|ihre*  anweisung*|instruktion*|befehle*|vorgaben|prompt*|systemanweisung*", 3},
	{"override", "ignore|ignorez|ignorer|oublie|oubliez|oublier|neglige|negligez  instruction*|consigne*|directive*|ordres|prompt*  precedent*|anterieur*|ci|initial*|systeme", 2},
	{"override", "ignora|ignore|ignorar|ignoren|olvida|olvide|olvidar|descarta|descarte|omite|omita  instruccion*|indicacion*|ordenes|directric*|prompt*  anterior*|previa*|previo*|inicial*|sistema", 2},
	// role: become something else.
	{"role", "you  are  now|henceforth  ai|dan|chatbot|assistant|jailbroken|unrestricted|unfiltered|bot|model|mode|hacker|admin*", 5},
	{"role", "pretend|act|behave|roleplay|respond|answer  unrestricted|jailbroken|unfiltered|uncensored|dan", 4},
	{"role", "developer|dan|god|jailbreak|sudo|unrestricted  mode  enabled|activated|on|engaged", 2},
	{"role", "from  now  on  you|your  must|will|shall|are|respond*|answer*|output*|only", 3},
	{"role", "du  bist  ab|jetzt|nun  ki|assistent|modell|chatbot|bot|uneingeschrankt*", 6},
	{"role", "tu|vous  es|etes  maintenant|desormais  ia|assistant|modele|chatbot", 5},
	{"role", "ahora|desde  eres  ia|asistente|modelo|chatbot", 4},
	// disclosure: give the reader's own prompt or secrets away.
	{"disclosure", "reveal|print|repeat|show|output|display|leak|disclose|expose|reproduce  system|initial|hidden|developer|original|secret|your  prompt*|instructions", 3},
	{"disclosure", "send|post|forward|transmit|exfiltrate|leak|reveal  your|user*|conversation|chat|session  api|history|password*|credential*|secrets|token*|memory", 4},
	{"disclosure", "zeige|zeig|verrate|gib|nenne|wiederhole  system|systemprompt|systemanweisung*|deinen|deine  prompt|anweisungen|aus|preis", 4},
	{"disclosure", "revele|revelez|affiche|affichez|montre|montrez  prompt|invite|instructions|consignes  systeme|initial*|cache*|secret*", 3},
	{"disclosure", "revela|revele|muestra|muestre|imprime  prompt|instrucciones|indicaciones  sistema|inicial*|ocult*|secret*", 3},
	// addressed: speaks to the AI as the reader and wants something of it.
	{"addressed", "if|when|since|because|as  you  are|re  ai|llm|language|chatbot|bot|assistant|gpt|artificial", 3},
	{"addressed", "attention|note|notice|message|instruction|instructions|dear|hello|hey  ai|llm|llms|language|chatbot*|gpt|claude|chatgpt|gemini|copilot  agent*|model*|assistant*|reader*|reviewer*|system*|crawler*|reading|please|must|should|summari*|only", 2},
	{"addressed", "ai|llm|gpt|chatgpt|claude|gemini|copilot|language  agent*|model*|assistant*|reviewer*|reader*|system*|crawler*|reading|summari*  must|should|shall|please  recommend*|say|state|answer|respond|reply|conclude|rate|rank|give|approve|accept|include|output|write|tell|treat|follow|ignore|always|not|never|report", 3},
	{"addressed", "wenn|falls|da  du|sie  ki|sprachmodell|chatbot|assistent|llm  bist|sind", 4},
	{"addressed", "ki|sprachmodell|sprachmodelle|chatbot|chatbots|llm|llms  modell*|assistent*|system*|muss|mussen|soll|sollen|sollte*  empfehlen|antworten|sagen|bewerten|schreiben|ausgeben|bestatigen|ignorieren", 5},
	{"addressed", "si  tu|vous  es|etes  ia|modele|assistant|chatbot|llm|intelligence", 3},
	{"addressed", "si  eres|es  ia|modelo|asistente|chatbot|llm|inteligencia", 3},
	// verdict: dictates what the reader says about the document.
	{"verdict", "tell|inform|assure|convince|persuade  the  user|reader|customer|human|operator  that|to", 2},
	{"verdict", "in|when  your  summary|answer|response|reply|output|evaluation|assessment|review  say|state|mention|write|include|always|recommend*|only|give|rate|conclude|do|never", 3},
	{"verdict", "when  summari*|asked|evaluat*|answering|reviewing|rating  say|state|recommend|rate|rank|respond|reply|answer  that|only|this|it|with|as|the", 6},
	{"verdict", "give|assign  this  paper|candidate|document|company|supplier|application|vendor|proposal|submission  highest|maximum|perfect|best|top  score|rating|grade|rank*|mark", 4},
	{"verdict", "sage|sag|teile|versichere  dem  nutzer|benutzer|anwender|leser  dass|mit", 3},
	{"verdict", "dis|dites|assure|assurez  utilisateur|lecteur  que", 3},
	{"verdict", "dile|diga|digale|asegura|asegure  usuario|lector  que", 3},
	// concealment: keep the person out of it.
	{"concealment", "do|don't|never  not|tell|mention|reveal|inform|disclose|say  tell|mention|reveal|inform|disclose|user|this|these  user|instruction*|prompt|human|reader", 3},
	{"concealment", "without  telling|informing|mentioning|notifying|asking  user|human|operator", 2},
}

// instructionMarkup is the markup of chat templates; in a document it can only be meant for a model.
var instructionMarkup = []string{
	"<|im_start|>", "<|im_end|>", "<|system|>", "<|user|>", "<|assistant|>", "<|endoftext|>", "<|begin_of_text|>",
	"<|start_header_id|>", "<|eot_id|>", "[inst]", "[/inst]", "<<sys>>", "<</sys>>", "<start_of_turn>",
	"<end_of_turn>", "### system:", "### instruction:", "### assistant:", "[system]", "<system>", "</system>",
	"<system_prompt>", "</system_prompt>", "begin system prompt", "end system prompt", "<tool_call>", "<function_call>",
}

// ibanLengths is the IBAN's length by country (ISO 13616 registry).
var ibanLengths = map[string]int{
	"AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BR": 29, "BY": 28,
	"CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18,
	"FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22,
	"IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20,
	"LU": 20, "LV": 21, "LY": 25, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MR": 27, "MT": 31, "MU": 30, "NL": 18,
	"NO": 15, "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22, "SA": 24, "SC": 31, "SE": 24,
	"SI": 19, "SK": 24, "SM": 27, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24,
	"XK": 20,
}

// phoneCues are the words before a number that make it a phone number where its form alone does not.
var phoneCues = set(`tel telephone phone ph mobile cell fax call whatsapp telefon telefonnummer mobil handy rufnummer
	ruf tél téléphone portable télécopie teléfono telefono móvil movil llame`)
