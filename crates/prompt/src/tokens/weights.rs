//! Weights of the classes of characters, in thousandths of a token: a row for each class, a column for each family.
//!
//! Made by `benches/tokens/fit`, which says from which texts and tokenizers. Not edited by hand.

use super::classes::CLASSES;

/// The weights for each family.
#[rustfmt::skip]
pub(super) const WEIGHTS: [[u16; 4]; CLASSES] = [
    [960, 1224, 1034, 1203], // word of 1
    [799, 696, 575, 739], // word of 2
    [541, 633, 425, 719], // word of 3
    [754, 352, 302, 427], // word of 4
    [150, 150, 150, 150], // word of 5
    [150, 546, 150, 150], // word of 6
    [150, 189, 150, 150], // word of 7
    [356, 150, 150, 150], // word of 8
    [150, 150, 150, 150], // word of 9
    [150, 150, 429, 479], // word of 10
    [150, 150, 150, 150], // word of 11 and more
    [670, 1117, 688, 1131], // letter beyond 11
    [123, 164, 221, 198], // letter a
    [0, 173, 0, 0], // letter b
    [0, 0, 0, 0], // letter c
    [0, 289, 0, 163], // letter d
    [0, 131, 0, 165], // letter e
    [0, 0, 543, 0], // letter f
    [266, 838, 372, 882], // letter g
    [24, 0, 0, 0], // letter h
    [0, 0, 0, 0], // letter i
    [494, 1836, 1034, 1717], // letter j
    [1031, 2182, 657, 2080], // letter k
    [219, 448, 548, 302], // letter l
    [0, 427, 0, 528], // letter m
    [405, 1075, 464, 1080], // letter n
    [0, 0, 0, 0], // letter o
    [19, 123, 0, 0], // letter p
    [1299, 2259, 2388, 2425], // letter q
    [219, 0, 75, 0], // letter r
    [37, 193, 0, 178], // letter s
    [492, 57, 382, 84], // letter t
    [289, 0, 0, 0], // letter u
    [846, 808, 865, 905], // letter v
    [724, 435, 1449, 291], // letter w
    [0, 179, 436, 0], // letter x
    [358, 0, 16, 0], // letter y
    [904, 1760, 2, 1767], // letter z
    [582, 1770, 575, 1861], // word that ends with a, i, o or u
    [300, 1969, 300, 1952], // word in capitals
    [246, 51, 250, 54], // capital of it
    [0, 1022, 0, 1074], // word with accents
    [0, 133, 0, 169], // character of it
    [300, 300, 300, 300], // random run
    [94, 183, 170, 0], // piece of it
    [641, 752, 597, 862], // character of it 
    [0, 0, 474, 149], // digit of it
    [1849, 944, 993, 732], // number of 1
    [201, 200, 287, 200], // number of 2
    [1814, 2556, 2401, 890], // number of 3
    [645, 200, 200, 216], // number of 4 and more
    [0, 0, 0, 0], // three digits of it
    [489, 508, 1025, 1113], // digit
    [1414, 1874, 1402, 1973], // line feed
    [52, 0, 70, 11], // white space after it
    [0, 0, 0, 0], // space
    [538, 460, 898, 797], // run of spaces
    [5, 5, 5, 15], // space beyond the second
    [740, 1098, 1305, 1094], // run of signs of 1
    [976, 1194, 759, 1160], // run of signs of 2
    [390, 820, 300, 560], // run of signs of 3
    [2626, 3505, 3824, 3447], // run of signs of 4 and more
    [100, 138, 135, 166], // sign beyond 4
    [500, 500, 500, 500], // run of one sign
    [30, 30, 30, 30], // sign of it
    [500, 1386, 1021, 1503], // LatinSigns
    [992, 605, 998, 394], // Latin1
    [1065, 1617, 817, 1505], // LatinA
    [3410, 4140, 3338, 3789], // LatinB
    [1254, 500, 500, 500], // Marks
    [300, 1310, 300, 1310], // Greek
    [231, 445, 203, 473], // Cyrillic
    [312, 300, 300, 300], // CyrillicRest
    [800, 4070, 2248, 4206], // CyrillicMore
    [500, 2653, 609, 2653], // Armenian
    [513, 1373, 494, 1389], // Hebrew
    [407, 1449, 404, 1448], // Arabic
    [503, 2788, 500, 2787], // ArabicRest
    [397, 1816, 303, 1815], // Devanagari
    [107, 2788, 46, 2798], // Bengali
    [167, 2709, 246, 2699], // Tamil
    [474, 3180, 501, 3181], // Telugu
    [500, 3841, 500, 3812], // Gurmukhi
    [500, 4026, 500, 4051], // Gujarati
    [600, 600, 600, 600], // Odia
    [500, 3065, 500, 3068], // Kannada
    [500, 3006, 500, 3016], // Malayalam
    [585, 2111, 566, 2111], // Sinhala
    [442, 2381, 327, 2373], // Thai
    [2072, 4069, 600, 4066], // Lao
    [632, 1342, 500, 2215], // Burmese
    [635, 4031, 500, 4033], // Khmer
    [2238, 3971, 1000, 3969], // Ethiopic
    [300, 1654, 463, 2255], // Georgian
    [687, 1888, 763, 1865], // Korean
    [500, 2501, 500, 2394], // LatinMore
    [0, 0, 0, 0], // GreekMore
    [500, 500, 500, 500], // Punctuation
    [150, 265, 150, 248], // Boxes
    [2108, 1469, 500, 500], // Symbols
    [500, 500, 500, 500], // ChineseSigns
    [568, 1041, 411, 1034], // Kana
    [843, 1562, 735, 1537], // Chinese
    [1000, 1000, 1000, 1000], // Surrogate
    [2331, 3609, 1046, 3561], // Emoji
    [1200, 1200, 1200, 1200], // TwoBytes
    [3227, 2504, 1500, 3160], // ThreeBytes
    [4247, 4119, 2000, 4152], // FourBytes
    [298, 0, 0, 0], // run of LatinSigns
    [0, 0, 0, 0], // run of Latin1
    [0, 0, 0, 0], // run of LatinA
    [0, 0, 0, 0], // run of LatinB
    [0, 0, 0, 0], // run of Marks
    [740, 2500, 755, 2500], // run of Greek
    [602, 2199, 582, 2042], // run of Cyrillic
    [0, 0, 0, 0], // run of CyrillicRest
    [0, 0, 0, 0], // run of CyrillicMore
    [0, 1707, 34, 1710], // run of Armenian
    [0, 286, 504, 210], // run of Hebrew
    [0, 0, 0, 0], // run of Arabic
    [0, 0, 0, 0], // run of ArabicRest
    [0, 0, 109, 0], // run of Devanagari
    [1786, 181, 1357, 119], // run of Bengali
    [2500, 1149, 443, 1246], // run of Tamil
    [793, 6, 26, 0], // run of Telugu
    [802, 2392, 896, 2500], // run of Gurmukhi
    [0, 1382, 0, 1244], // run of Gujarati
    [0, 0, 0, 0], // run of Odia
    [0, 778, 0, 742], // run of Kannada
    [0, 2415, 0, 2299], // run of Malayalam
    [649, 2285, 0, 2282], // run of Sinhala
    [1045, 2101, 1339, 2270], // run of Thai
    [1219, 2327, 910, 2346], // run of Lao
    [0, 0, 0, 1644], // run of Burmese
    [1557, 1350, 680, 1304], // run of Khmer
    [0, 2500, 0, 2500], // run of Ethiopic
    [279, 1333, 0, 881], // run of Georgian
    [403, 0, 0, 0], // run of Korean
    [0, 0, 0, 0], // run of LatinMore
    [0, 0, 0, 0], // run of GreekMore
    [0, 0, 0, 0], // run of Punctuation
    [1567, 2500, 730, 2500], // run of Boxes
    [0, 1268, 2022, 2390], // run of Symbols
    [989, 648, 730, 768], // run of ChineseSigns
    [531, 977, 55, 1002], // run of Kana
    [445, 0, 0, 0], // run of Chinese
    [0, 0, 0, 0], // run of Surrogate
    [0, 0, 1189, 176], // run of Emoji
    [0, 0, 0, 0], // run of TwoBytes
    [0, 0, 0, 0], // run of ThreeBytes
    [0, 0, 0, 0], // run of FourBytes
    [3924, 5845, 6329, 5896], // escape of LatinSigns
    [4879, 6866, 7137, 6725], // escape of Latin1
    [3494, 5167, 6691, 5269], // escape of LatinA
    [4469, 7414, 7500, 7056], // escape of LatinB
    [3000, 4181, 5956, 5618], // escape of Marks
    [4298, 6246, 6333, 6302], // escape of Greek
    [3552, 4902, 6714, 6700], // escape of Cyrillic
    [3710, 6143, 6755, 6833], // escape of CyrillicRest
    [3924, 5369, 6617, 6624], // escape of CyrillicMore
    [3526, 5379, 6718, 6710], // escape of Armenian
    [4444, 6372, 6417, 6404], // escape of Hebrew
    [3589, 4781, 6715, 6703], // escape of Arabic
    [4385, 5741, 6266, 6266], // escape of ArabicRest
    [3566, 5376, 6717, 6704], // escape of Devanagari
    [4018, 5954, 6270, 6272], // escape of Bengali
    [4507, 6816, 5428, 6816], // escape of Tamil
    [5063, 7263, 6712, 7263], // escape of Telugu
    [5109, 7109, 6719, 7093], // escape of Gurmukhi
    [4457, 6584, 5536, 6583], // escape of Gujarati
    [3000, 3000, 3000, 3000], // escape of Odia
    [4446, 6716, 5548, 6715], // escape of Kannada
    [5076, 7321, 6724, 7320], // escape of Malayalam
    [4631, 6704, 5520, 6701], // escape of Sinhala
    [4705, 6939, 6722, 6941], // escape of Thai
    [4532, 6735, 5902, 6735], // escape of Lao
    [3457, 5187, 6721, 6715], // escape of Burmese
    [3773, 5789, 6630, 6612], // escape of Khmer
    [3488, 5444, 6632, 6613], // escape of Ethiopic
    [4379, 6420, 6463, 6456], // escape of Georgian
    [3930, 5179, 5371, 5300], // escape of Korean
    [3842, 5412, 4604, 5503], // escape of LatinMore
    [3000, 7500, 3000, 7500], // escape of GreekMore
    [3160, 4079, 5803, 4280], // escape of Punctuation
    [3327, 4211, 6699, 6642], // escape of Boxes
    [3586, 5467, 6506, 5607], // escape of Symbols
    [3266, 4636, 5612, 4673], // escape of ChineseSigns
    [3716, 5787, 6645, 6608], // escape of Kana
    [4068, 6238, 6471, 6463], // escape of Chinese
    [4296, 5197, 5142, 5183], // escape of Surrogate
    [4919, 7500, 4896, 7500], // escape of Emoji
    [3000, 3000, 3000, 3000], // escape of TwoBytes
    [3000, 7038, 3000, 4558], // escape of ThreeBytes
    [3000, 3000, 3000, 3000], // escape of FourBytes
];

/// The weights of a character of base64.
pub(super) const BASE64: [u16; 4] = [700, 866, 788, 901];
