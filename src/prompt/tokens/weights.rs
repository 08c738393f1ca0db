//! Weights of the classes of characters, in thousandths of a token: a row for each class, a column for each family.
//!
//! Made by `benches/tokens/fit`, which says from which texts and tokenizers. Not edited by hand.

use super::classes::CLASSES;

/// The weights for each family.
#[rustfmt::skip]
pub(super) const WEIGHTS: [[u16; 4]; CLASSES] = [
    [1036, 1059, 1067, 1042], // word of 1
    [795, 602, 609, 684], // word of 2
    [533, 764, 513, 774], // word of 3
    [839, 414, 285, 601], // word of 4
    [196, 150, 289, 162], // word of 5
    [150, 941, 150, 436], // word of 6
    [150, 150, 150, 150], // word of 7
    [154, 150, 150, 150], // word of 8
    [150, 150, 175, 150], // word of 9
    [150, 150, 156, 150], // word of 10
    [150, 150, 150, 150], // word of 11 and more
    [783, 1268, 724, 1310], // letter beyond 11
    [166, 140, 242, 217], // letter a
    [125, 305, 0, 0], // letter b
    [0, 0, 0, 0], // letter c
    [0, 238, 0, 53], // letter d
    [0, 155, 0, 212], // letter e
    [5, 0, 699, 0], // letter f
    [164, 539, 328, 739], // letter g
    [45, 0, 0, 0], // letter h
    [0, 32, 0, 0], // letter i
    [733, 1903, 1024, 1778], // letter j
    [896, 1976, 590, 1970], // letter k
    [252, 415, 437, 311], // letter l
    [0, 484, 101, 602], // letter m
    [370, 1088, 438, 1099], // letter n
    [0, 0, 0, 0], // letter o
    [0, 251, 0, 65], // letter p
    [879, 1941, 1850, 1863], // letter q
    [156, 0, 112, 0], // letter r
    [42, 57, 0, 127], // letter s
    [522, 0, 280, 0], // letter t
    [300, 0, 0, 59], // letter u
    [771, 810, 959, 729], // letter v
    [830, 515, 1361, 141], // letter w
    [0, 147, 670, 287], // letter x
    [265, 0, 172, 0], // letter y
    [726, 1674, 120, 1897], // letter z
    [625, 1834, 614, 1864], // word that ends with a, i, o or u
    [300, 2163, 300, 1482], // word in capitals
    [246, 14, 249, 144], // capital of it
    [0, 1098, 0, 1384], // word with accents
    [0, 173, 0, 152], // character of it
    [300, 300, 300, 300], // random run
    [133, 216, 130, 142], // piece of it
    [628, 743, 614, 774], // character of it 
    [0, 0, 466, 175], // digit of it
    [1714, 1108, 920, 862], // number of 1
    [200, 200, 258, 200], // number of 2
    [1772, 2565, 2410, 750], // number of 3
    [498, 200, 200, 200], // number of 4 and more
    [0, 0, 0, 0], // three digits of it
    [503, 500, 1025, 1128], // digit
    [1412, 1907, 1366, 2044], // line feed
    [48, 0, 88, 8], // white space after it
    [0, 0, 0, 0], // space
    [686, 620, 300, 917], // run of spaces
    [5, 5, 5, 5], // space beyond the second
    [756, 1084, 1318, 1044], // run of signs of 1
    [962, 1244, 823, 1172], // run of signs of 2
    [300, 650, 300, 300], // run of signs of 3
    [2609, 3831, 3390, 3484], // run of signs of 4 and more
    [100, 135, 140, 165], // sign beyond 4
    [500, 500, 500, 500], // run of one sign
    [30, 30, 30, 30], // sign of it
    [500, 1471, 1055, 1542], // LatinSigns
    [1037, 494, 1041, 300], // Latin1
    [1070, 1332, 743, 1375], // LatinA
    [3323, 3825, 3420, 3266], // LatinB
    [1309, 500, 500, 500], // Marks
    [300, 1077, 300, 1234], // Greek
    [236, 452, 206, 488], // Cyrillic
    [303, 300, 300, 300], // CyrillicRest
    [800, 4103, 2267, 4277], // CyrillicMore
    [500, 2669, 608, 2679], // Armenian
    [513, 1391, 555, 1393], // Hebrew
    [408, 1450, 402, 1451], // Arabic
    [500, 2786, 500, 2783], // ArabicRest
    [398, 1816, 299, 1817], // Devanagari
    [108, 2787, 46, 2801], // Bengali
    [116, 2709, 251, 2685], // Tamil
    [465, 3177, 479, 3174], // Telugu
    [500, 3829, 500, 3795], // Gurmukhi
    [500, 4031, 500, 4061], // Gujarati
    [600, 600, 600, 600], // Odia
    [500, 3062, 500, 3060], // Kannada
    [500, 3016, 500, 3018], // Malayalam
    [570, 2114, 565, 2115], // Sinhala
    [443, 2379, 331, 2371], // Thai
    [2071, 4069, 600, 4067], // Lao
    [632, 1342, 500, 2216], // Burmese
    [633, 4030, 500, 4034], // Khmer
    [2238, 3882, 1000, 3882], // Ethiopic
    [300, 1654, 465, 2229], // Georgian
    [627, 1872, 768, 1854], // Korean
    [500, 2389, 500, 2200], // LatinMore
    [0, 0, 0, 0], // GreekMore
    [500, 500, 500, 500], // Punctuation
    [150, 150, 150, 157], // Boxes
    [2077, 500, 500, 500], // Symbols
    [500, 500, 500, 500], // ChineseSigns
    [582, 1020, 405, 1027], // Kana
    [829, 1538, 738, 1537], // Chinese
    [1000, 1000, 1000, 1000], // Surrogate
    [2340, 3599, 1058, 3564], // Emoji
    [1200, 1200, 1200, 1200], // TwoBytes
    [1500, 1500, 1500, 1500], // ThreeBytes
    [4115, 4564, 2000, 4066], // FourBytes
    [436, 0, 0, 0], // run of LatinSigns
    [0, 0, 0, 0], // run of Latin1
    [0, 0, 0, 0], // run of LatinA
    [0, 0, 0, 0], // run of LatinB
    [0, 0, 0, 0], // run of Marks
    [739, 3767, 775, 2910], // run of Greek
    [582, 2161, 570, 1962], // run of Cyrillic
    [0, 0, 0, 0], // run of CyrillicRest
    [0, 0, 0, 0], // run of CyrillicMore
    [0, 1601, 48, 1529], // run of Armenian
    [0, 206, 229, 198], // run of Hebrew
    [0, 0, 0, 0], // run of Arabic
    [0, 0, 0, 0], // run of ArabicRest
    [0, 0, 130, 0], // run of Devanagari
    [1781, 185, 1354, 106], // run of Bengali
    [2992, 1152, 413, 1396], // run of Tamil
    [872, 39, 231, 69], // run of Telugu
    [807, 2437, 900, 2563], // run of Gurmukhi
    [0, 1358, 0, 1200], // run of Gujarati
    [0, 0, 0, 0], // run of Odia
    [0, 800, 0, 820], // run of Kannada
    [0, 2305, 0, 2276], // run of Malayalam
    [734, 2266, 7, 2264], // run of Sinhala
    [1055, 2157, 1206, 2314], // run of Thai
    [1282, 2289, 992, 2333], // run of Lao
    [0, 0, 0, 1622], // run of Burmese
    [1602, 1353, 714, 1306], // run of Khmer
    [0, 13390, 0, 13250], // run of Ethiopic
    [280, 1330, 0, 1092], // run of Georgian
    [596, 0, 0, 0], // run of Korean
    [0, 0, 0, 0], // run of LatinMore
    [0, 1778, 0, 0], // run of GreekMore
    [0, 26, 0, 23], // run of Punctuation
    [1476, 3483, 942, 3373], // run of Boxes
    [0, 2236, 1985, 2348], // run of Symbols
    [961, 694, 675, 743], // run of ChineseSigns
    [438, 1057, 86, 1023], // run of Kana
    [550, 0, 0, 0], // run of Chinese
    [0, 0, 0, 0], // run of Surrogate
    [0, 42, 1147, 169], // run of Emoji
    [0, 0, 0, 0], // run of TwoBytes
    [0, 0, 0, 0], // run of ThreeBytes
    [0, 0, 0, 0], // run of FourBytes
    [3921, 5902, 6290, 5935], // escape of LatinSigns
    [4839, 6873, 7082, 6793], // escape of Latin1
    [3509, 5119, 6503, 5255], // escape of LatinA
    [4458, 7419, 7991, 6609], // escape of LatinB
    [3000, 4475, 5791, 6011], // escape of Marks
    [4298, 6223, 6336, 6303], // escape of Greek
    [3555, 4902, 6715, 6703], // escape of Cyrillic
    [3703, 6145, 6762, 6828], // escape of CyrillicRest
    [3881, 5370, 6623, 6633], // escape of CyrillicMore
    [3526, 5379, 6719, 6710], // escape of Armenian
    [4445, 6374, 6420, 6408], // escape of Hebrew
    [3588, 4775, 6718, 6705], // escape of Arabic
    [4391, 5751, 6263, 6265], // escape of ArabicRest
    [3567, 5376, 6718, 6705], // escape of Devanagari
    [4020, 5953, 6273, 6273], // escape of Bengali
    [4508, 6817, 5430, 6818], // escape of Tamil
    [5063, 7263, 6714, 7266], // escape of Telugu
    [5110, 7110, 6720, 7093], // escape of Gurmukhi
    [4458, 6584, 5538, 6585], // escape of Gujarati
    [3000, 3000, 3000, 3000], // escape of Odia
    [4447, 6716, 5550, 6716], // escape of Kannada
    [5077, 7321, 6726, 7321], // escape of Malayalam
    [4632, 6704, 5524, 6703], // escape of Sinhala
    [4705, 6940, 6723, 6942], // escape of Thai
    [4533, 6736, 5904, 6737], // escape of Lao
    [3457, 5187, 6722, 6715], // escape of Burmese
    [3774, 5789, 6631, 6612], // escape of Khmer
    [3489, 5444, 6633, 6614], // escape of Ethiopic
    [4380, 6420, 6465, 6458], // escape of Georgian
    [3932, 5175, 5380, 5302], // escape of Korean
    [3770, 5862, 4443, 5939], // escape of LatinMore
    [3000, 46793, 3000, 39714], // escape of GreekMore
    [3181, 4147, 5682, 4292], // escape of Punctuation
    [3317, 4213, 6724, 6656], // escape of Boxes
    [3555, 5543, 6474, 5609], // escape of Symbols
    [3000, 4662, 5577, 4685], // escape of ChineseSigns
    [3723, 5785, 6644, 6603], // escape of Kana
    [4099, 6236, 6477, 6472], // escape of Chinese
    [4301, 5095, 5162, 5139], // escape of Surrogate
    [4851, 8519, 4616, 7818], // escape of Emoji
    [3000, 3000, 3000, 3000], // escape of TwoBytes
    [6539, 3000, 14078, 13801], // escape of ThreeBytes
    [3000, 3000, 3000, 3000], // escape of FourBytes
];

/// The weights of a character of base64.
pub(super) const BASE64: [u16; 4] = [708, 873, 783, 891];
