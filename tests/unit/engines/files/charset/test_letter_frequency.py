"""Undeclared legacy encodings are detected from real sentences, long and short."""

import pytest

from unit.engines.files.file_reader import text_of

TEXTS = {
    "ru": (
        "Договор аренды заканчивается в мае, и мы должны решить, остаёмся ли в этой квартире. Хозяй"
        "ка просит платить до третьего числа каждого месяца, иначе она начислит пеню. Вчера приходи"
        "л мастер и починил кран на кухне; счёт он пришлёт по почте на следующей неделе.",
        "koi8-r cp1251 cp866 iso8859-5 mac-cyrillic",
    ),
    "uk": (
        "Договір оренди закінчується у травні, тож ми маємо вирішити, чи залишаємося в цій квартирі"
        ". Господиня просить сплачувати до третього числа кожного місяця. Учора приходив майстер і "
        "полагодив кран на кухні; рахунок він надішле поштою.",
        "koi8-u cp1251",
    ),
    "bg": (
        "Договорът за наем изтича през май и трябва да решим дали ще останем в това жилище. Хазяйка"
        "та иска да плащаме до трето число на всеки месец. Вчера дойде майстор и поправи крана в ку"
        "хнята.",
        "cp1251",
    ),
    "el": (
        "Το συμβόλαιο λήγει τον Μάιο και πρέπει να αποφασίσουμε αν θα μείνουμε σε αυτό το σπίτι. Η "
        "ιδιοκτήτρια ζητά να πληρώνουμε μέχρι τις τρεις κάθε μήνα. Χθες ήρθε ο τεχνίτης και έφτιαξε"
        " τη βρύση της κουζίνας.",
        "cp1253 iso8859-7",
    ),
    "he": (
        "חוזה השכירות מסתיים בחודש מאי ועלינו להחליט אם נישאר בדירה הזאת. בעלת הבית מבקשת לשלם עד ה"
        "שלישי בכל חודש. אתמול בא בעל מלאכה ותיקן את הברז במטבח, ואת החשבון הוא ישלח בדואר.",
        "cp1255 iso8859-8",
    ),
    "ar": (
        "ينتهي عقد الإيجار في شهر مايو وعلينا أن نقرر هل سنبقى في هذه الشقة. تطلب صاحبة البيت أن ند"
        "فع قبل اليوم الثالث من كل شهر. جاء العامل أمس وأصلح صنبور المطبخ وسيرسل الفاتورة بالبريد.",
        "cp1256 iso8859-6",
    ),
    "th": (
        "สัญญาเช่าสิ้นสุดในเดือนพฤษภาคมและเราต้องตัดสินใจว่าจะอยู่ห้องนี้ต่อหรือไม่ เจ้าของบ้านขอให"
        "้จ่ายเงินก่อนวันที่สามของทุกเดือน เมื่อวานช่างมาซ่อมก๊อกน้ำในครัว",
        "cp874",
    ),
    "ja": (
        "契約は五月に終わりますので、この部屋に住み続けるかどうかを決めなければなりません。大家さんは毎月三日"
        "までに家賃を払ってほしいと言っています。昨日、職人が来て台所の蛇口を直しました。請求書は郵便で届きま"
        "す。",
        "shift_jis euc_jp",
    ),
    "zh": (
        "租房合同五月到期，我们要决定是不是继续住在这里。房东要求每个月三号以前付房租，不然要加收滞纳金。昨天"
        "师傅来了，把厨房的水龙头修好了，账单下个星期会寄过来。",
        "gbk",
    ),
    "tw": (
        "租屋契約五月到期，我們要決定是不是繼續住在這裡。房東要求每個月三號以前付房租，不然要加收滯納金。昨天"
        "師傅來了，把廚房的水龍頭修好了，帳單下個星期會寄過來。",
        "big5",
    ),
    "ko": (
        "임대 계약은 오월에 끝나므로 이 집에서 계속 살지 결정해야 합니다. 집주인은 매달 삼일까지"
        " 집세를 내 달라고 합니다. 어제 기사가 와서 부엌 수도꼭지를 고쳤고 청구서는 우편으로 온"
        "다고 했습니다.",
        "euc_kr",
    ),
    "de": (
        "Die Größe der Wohnung beträgt fünfzig Quadratmeter, über die Höhe der Miete müssen wir spä"
        "ter sprechen. Die Schlüssel übergibt Herr Müller am dritten März; für Schäden haftet der M"
        "ieter.",
        "cp1252 cp850 cp437 mac-roman",
    ),
    "fr": (
        "Le contrat est résilié à la fin du mois et nous devons décider où habiter après l'été. La "
        "propriétaire a demandé de régler les charges dès réception de la facture; le plombier a ré"
        "paré l'évier.",
        "cp1252 cp850 cp437 mac-roman",
    ),
    "es": (
        "El señor Muñoz dejará el piso en mayo y todavía no sabemos quién pagará la reparación del "
        "baño. La dueña pidió que abonáramos el alquiler antes del día tres de cada mes.",
        "cp1252 cp850 cp437",
    ),
    "pt": (
        "A reunião não começou às três horas porque a proprietária não chegou. O contrato de locaçã"
        "o termina em maio e a renovação ainda não está decidida.",
        "cp1252 cp850",
    ),
    "sv": (
        "Göteborg och Malmö ligger i Sverige, och hyran ska betalas före den tredje varje månad. I "
        "går kom rörmokaren och lagade kranen i köket; räkningen kommer på måndag.",
        "cp1252 cp850 cp437",
    ),
    "pl": (
        "Umowa najmu kończy się w maju i musimy zdecydować, czy zostajemy w tym mieszkaniu. Właścic"
        "ielka prosi, żeby płacić do trzeciego dnia każdego miesiąca. Wczoraj przyszedł hydraulik i"
        " naprawił kran w łazience.",
        "cp1250 iso8859-2 cp852",
    ),
    "cs": (
        "Nájemní smlouva končí v květnu a musíme se rozhodnout, zda v bytě zůstaneme. Majitelka žád"
        "á, abychom platili do třetího dne každého měsíce. Včera přišel řemeslník a opravil kohoute"
        "k v kuchyni.",
        "cp1250 iso8859-2 cp852",
    ),
    "hu": (
        "A bérleti szerződés májusban jár le, és el kell döntenünk, hogy maradunk-e ebben a lakásba"
        "n. A tulajdonosnő kéri, hogy minden hónap harmadikáig fizessünk. Tegnap jött a szerelő, és"
        " megjavította a csapot.",
        "cp1250 iso8859-2",
    ),
    "tr": (
        "Kira sözleşmesi mayısta bitiyor ve bu evde kalıp kalmayacağımıza karar vermeliyiz. Ev sahi"
        "bi her ayın üçüne kadar ödeme yapmamızı istiyor. Dün usta geldi, mutfaktaki musluğu onardı"
        ".",
        "cp1254",
    ),
}
CASES = [(language, encoding) for language, (_, encodings) in TEXTS.items() for encoding in encodings.split()]
# Languages whose letters are so distinctive that a few words are enough.
SHORT = [
    case for case in CASES if case[0] in {"ru", "uk", "bg", "el", "he", "ar", "th", "ja", "zh", "tw", "ko"}
]


@pytest.mark.parametrize(("language", "encoding"), CASES)
def test_encoding_is_detected_from_sentences(language, encoding):
    said = TEXTS[language][0].encode(encoding, "ignore").decode(encoding)
    for text in (said, said * 20):
        assert text_of(text.encode(encoding)) == text


@pytest.mark.parametrize(("language", "encoding"), SHORT)
def test_encoding_is_detected_from_a_few_words(language, encoding):
    said = TEXTS[language][0][:20].encode(encoding, "ignore").decode(encoding)
    assert text_of(said.encode(encoding)) == said
