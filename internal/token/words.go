package token

import "strings"

// Words returns how many different words Word gives.
func Words() int { return len(words) }

// Word returns word i modulo Words with a space in front. With that space, or
// without it where the text begins (Word(i)[1:]), it is one token here and in
// the cl100k_base and o200k_base vocabularies.
func Word(i int) string {
	n := len(words)
	return words[((i%n)+n)%n]
}

// words are " a", " b", ... in alphabetical order, all within one string.
var words = func() []string {
	list := strings.Fields(wordList)
	all := " " + strings.Join(list, " ")
	out := make([]string, 0, len(list))
	for _, w := range list {
		n := 1 + len(w)
		out = append(out, all[:n])
		all = all[n:]
	}
	return out
}()

// wordList holds common English words that are single tokens with and without
// a leading space in cl100k_base and o200k_base; Qwen's and Llama 3's
// vocabularies contain those of cl100k_base.
const wordList = `
ability able about above absolute abstract accept accepted access according account accounts accuracy acting
action actions activate activated active actively activity actor actors acts actual actually adapter
adaptive added adding address addresses adds adjust advance advanced affected after again against agency
agent agents aggregate agree ahead alarm alert algorithm alice aligned alignment alive allocate allocated
allow allowed allows almost alone along alphabet already also alter alternate although always among amount
analysis ancestor anchor angle angular animals animation anonymous another answer anything appear append
apply approve approved archive archives area areas arena argument arguments around array arrays arrow
article articles artifact ascending aside asking asks aspect assembly assert asset assets assign assigned
assist associate assuming atomic atoms attach attached attempt attention attribute audio audit author
authority authors automatic available average avoid aware away axis back backup badge bags balance balanced
balls band bare bars base based baseline basic basis batch beans because been before begin behavior being
belongs below bench benchmark best better between billing binary bind binding bindings birds bits blank
block blocked blocking blocks blue blur board body bold bolt book bookmark books bootstrap border borrow
both bottom bound boundary bounded bounds boxes boys brace branch branches break breaking bridge brief bring
broadcast broken bubble bucket buffer buffers bugs build builder builders building built bulk bull bullet
business busy button buttons cache cached calculate calendar call called calling calls came candidate cannot
canonical capacity capital caption capture captures card cards care carry cars cascade case cases casts
catalog catch category cats caught cause cell cells center central chain chains challenge change changed
changes changing channel channels chapter character charge charged charset charts chat check checked checker
checking checks child children choice choices choose chosen circle citation cite city claim claimed claims
class classes classic clean cleanup clear click client clients clock clone close closed closest closing
closure cloud club cluster code coded codes coffee collapse collect collector collision color colors column
columns combine combined come comes coming comma command commands comment comments commit common community
compact company compare complete completed complex component compose compound compress compute computed
computer concept condition configure confirm confirmed connect connected connector consider console constant
constants construct consult consume consumer contact contacts contain contained container contains content
contents context contexts continue continued contract contrast control controls convert converted converter
cool copies copy copyright core cores corner correct cost could count counter countries counts course court
cover coverage covered covers cream create created creates creating creation creative creator credit credits
criteria critical cross current currently cursor custom customer customers cuts cycle cycles daily damage
dark dash data database datasets date dated dates days deadline deal decimal decision declare decorate
decrypt deep default defaults define defined defines degree degrees delay delegate delete deleted deliver
delivery dense density deny depend dependent depending depends depth derive derived describe design desired
destroy detach detail details detect develop developer device devices different digit digital digits
dimension direct direction directive directory disabled disc discard discount discover disk dispatch display
dispose distance distinct divide division document documents does dogs doing domain domains done door dots
down download downloads draft draw drawing drive driver drivers drop drops dummy dump duplicate duration
during dynamic each early earn earned east easy echo edge edges edit edited editing editor effect effective
effects efficient eight either elapsed elastic electric element elements else email embedding employee
employees empty enabled encrypt encrypted ended ending ends energy engine ensure enter entered entities
entity entries entropy entry equal equals erase error essential estimate evaluate even event events ever
every everyone exact example examples except exception exchange exclude excluding exclusive execute
execution executor exercise exist existing exists exit expand expanded expect expected expects expense
expire expired expires explicit export exports express extend extended extends extension extent external
extra extract extras face facility fact factor factory fail failed fails failure fair fall fallback falls
false family farm fast fatal fault favor favorite feature features feed feedback feel field fields figure
file files fill filled fills filter filtered filters final finally find finder finding fine finish finished
finite fire first fish fitness fits five fixed flat flex flight flip floating flow flowers flush focus fold
folder folders follow following font fonts food foot force forced forces forcing forecast foreign forest
forget forgot form format formats formatted formatter formed former formerly forms formula forth forward
found four fraction fragment frame frames framework free freeze frequency fresh friend friendly friends from
front fruit full fully function functions future gain game games gateway general generate generated
generator generic gets getting girls give given goal going gold gone good grab graduate grant graph graphics
graphs gray great greater green grey grid group groups grow growth guard guards guess guest guide hack half
hall hand handled handles handling hang happy hard hardware have haven having head header headers heading
heads health heard heavy height held hello help helper helpers here hidden hide high higher highest
highlight hint history hits hold holder holders holding holds holes home hope host hour hours house however
human icon icons idea ideal ideas identify identity idle ignore ignored illegal image images immutable
impact implement implicit import important imports inactive inch incident include included includes
including inclusive incoming incorrect increase increment indent index indexed indexes indicator indices
infer inflate inform inherits initial inject inner input inputs insert inside inspect install installed
instance instances instead intent interest interface internal interpret interrupt interval into invalid
inverse invert issue issued issuer issues italic item items iteration join joined joining joint journal
junction just keep keeping keyboard keys keywords kids kind know knowledge known label labels land landing
language languages large last late later latest launch laws layer layers layout lazy lead leading learn
least leave left legal legs length less letter letters level levels liable libraries library license
licensed licenses life lift light like likely likes limit limited limits line linear lines link linked links
list listed listen listener listeners listing lists literal little live load loaded loader loading loads
local locale localized located location locations locator locks logged logger logging logic logical logo
logs long look looking looks loop loops lose loss lost lots lower lowest machine made magic mail main major
make makes making male manage managed manager mandatory manifest manual many mapped mapping maps margin
marked marker markers marks mask mass match matched matcher matches matching material materials matrix
matter maximum maybe mean meaning means measure media median medium meet meeting member members memory
mention mentioned menu merge merged message messages method methods metric metrics middle might migration
mile mind minimal minimum minor minute minutes mirror miss missing mixed mode model models modern modified
modifier modify module modules money monitor month months more most mostly mother mouse move moves movies
moving much multiple multiply must name named names national native natural nature near nearest necessary
need needed needs negative neighbor neighbors nest network never news next nice night node nodes noise none
norm normal normalize normally notation note notes nothing notice noticed number numbers numeric object
objects observe observer obsolete occupied offer offers office official often okay older omit once ones
online only opaque open opened opening opens operand operate operation operator operators optimized
optimizer option optional options opts orange order ordered ordering orders ordinary origin original other
others otherwise ought ounce ounces outer outline outlined output outputs outside over overall overflow
overview overwrite owned owner owners ownership owns package packages packed packet padding page pages paid
paint pair paired pairs paper paragraph parallel parameter parent parents park part partial partition
partner parts party pass passed passes password past path paths patterns pause paused payment payments peak
peek peer pending people percent perfect perform perhaps period permit persist person personal persons phase
phone phrase physical pick picked picker picture piece pieces pipe pipeline pipes pivot pizza place placed
placement places placing plain plan plane plans plants platform play player please plot plug plural plus
point points policy poll pool popular populate port portal portion ports position positions positive
possible possibly post posting potential power powers practice precision predicate prefer preferred prepare
prepared presence present pressed pretty prevent previous price primary prime primitive principal print
printed printer printing prints prior priority privacy private probably probe problem procedure process
processed processor produce producer product products profile profiles profit profits program progress
project projects promise promotion prompt proof proper property proposal props protect protected protocol
prototype prove provide provided provider providers pseudo public publish published publisher pull pulse
purchase pure purpose push puts quality quantity quarter question questions queues quick quiet quit quite
quote quoted quotes raise raised raises raising random range ranges rank ranking rate rather reach reachable
react read reader reading reads ready real really reason receipt receive received receiver recent recipient
recommend record records recover rectangle recursive reduce refer reference reflect refresh region regions
register regular reject related relation relative release released remain remaining remark remember remote
remove removed rename render repeat replace reply report reported reports represent request requested
requests require required requires research reserve reserved resolve resolved resolver resource resources
respect respond response responses restart restore restrict result results resume retain retrieve return
returned returns reuse reverse review revision rewrite ride right rights ring risk role rolling roman room
root roots rotation round rounded route routes routine rows rule rules runner running runs safe said salary
sale same sample samples sampling save saved saving scale scaled scan scatter scenario schedule scheduled
scheduler scheme school scope score scores scratch screen script scripts search second secondary seconds
secret sect section sections secure security seed seeing seek seen segment segments select selected
selection self sell selling semantic send sender sending sense sent sentence sequence series serve service
services session sessions sets setting settings severity shade shadow shake shall shape share shared shares
sharing sheet shield shift ship shipping short shortcut shot should show shown shows shuffle shutdown side
sign signal signals signature silent similar simple simulate since single sink site sites size sizes skip
slash sleep slice slide slider slot slots slow small smart social soft software sold sole solid solution
solve solver some someone something sometimes soon sorted sorting sound sounds source sources space spaces
spacing special specific specified speed spent spin split spot spread spring square stable stage stamp stand
standard stands star stars start started starter starting starts startup state statement states status stay
steady stem step steps sticks sticky still stop storage store stored stores straight strategy stream streams
stress strict string strings stroke strong structure student students studio stuff style styles subject
submitted subscribe subtract success such suggest suite summary support supported supports sure surface
switch symbol symbols system systems table tables tags tail take taken takes taking talk tank target targets
task tasks teacher team teams tech technical tell templates temporary term terminal terminate terms test
tested tester testing tests text than thanks that their them theme then there these they thin thing things
think third this those though thought three threshold through throw throws thus tick ticket tickets ticks
ties time timer times tiny tips title titles today tool tools topic topics total touch trace track tracked
tracking tracks trade traffic train transfer transform transport transpose trap trash travel trees triangle
tries trigger trip truck true truncate trust trusted truth trying turn turned tutorial type types typically
typing unable under underline uniform union unique unit units unknown unless unlikely unordered until unwrap
update updated updates upgrade upon upper usable usage used user users uses using usual usually utilities
validated value values variant variants vary velocity venture verb verified verify version versions vertical
very vice video view views visible visit visited visitor visual voice volatile volume wait waiting wake walk
walking want wanted warning warnings watch water wave ways weak website week weeks weight weighted weights
welcome well went were what whatever wheel when where whether which while whole whose wide will window wins
wire wise wish with within without word words work worked workers working works workspace world worth would
write writers writes writing written wrong yards year years yellow your zero
`
