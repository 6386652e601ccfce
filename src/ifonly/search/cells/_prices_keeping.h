/* Prices that are kept for a proof, rounded, as changes of those of the part around. Included by _prices.h; keeping.py is
 * the twin of this file, and question/trail.py has the bytes.
 */

#define LARGEST 1073741824.0  /* units of one price, as in keeping.py */

enum { PRICES_EVENT = 10, ROUGHEST = 8 };  /* as in question/trail.py, and in keeping.py: the units of the first rounding */

static int keeps_prices(const Search *s, const Prices *p) { return s->keeps_trail && p->unit > 0.0; }

static double upper_half(double number) {
    uint64_t bits;
    memcpy(&bits, &number, 8);
    bits = bits >> 32 << 32;
    memcpy(&number, &bits, 8);
    return number;
}

static double rounded_price(double price, double base, double unit, double by) {
    double units = base / unit + by * rint((price - base) / (by * unit));
    if (!(units > 0.0)) units = 0.0;
    if (units > LARGEST) units = LARGEST;
    return units * unit;
}

static void keep_base(Prices *p) {
    memcpy(p->base_below, p->below, 8 * (size_t)p->n);
    memcpy(p->base_above, p->above, 8 * (size_t)p->n);
}

static void round_prices(Prices *p, const double *below, const double *above, double mu, int by) {
    /* Prices that differ from those of the part around by multiples of so many units, where they can. */
    for (int32_t i = 0; i < p->n; i++) {
        p->below[i] = rounded_price(below[i], p->base_below[i], p->unit, (double)by);
        p->above[i] = rounded_price(above[i], p->base_above[i], p->unit, (double)by);
    }
    p->mu = upper_half(mu);
}

static size_t put_varint(unsigned char *to, uint64_t number) {
    size_t n = 0;
    for (; number >= 128; number >>= 7) to[n++] = (unsigned char)(number % 128 + 128);
    to[n++] = (unsigned char)number;
    return n;
}

static int note_rounded(Search *s, Prices *p) {
    /* The changes of prices as an event; 0: there is no room. */
    if (!room_for_event(s, 11 + 20 * (size_t)p->n)) return 0;
    unsigned char *head = s->trail + s->n_trail, *to = head + 11;
    int exponent;
    frexp(p->unit, &exponent);
    for (int pass = 0; pass < 2; pass++) {
        int64_t before = -1;
        for (int32_t i = 0; i < 2 * p->n; i++) {
            double now = i % 2 ? p->above[i / 2] : p->below[i / 2], base = i % 2 ? p->base_above[i / 2] : p->base_below[i / 2];
            int64_t change = (int64_t)((now - base) / p->unit), name = 2 * p->names[p->id[i / 2]] + i % 2;
            if (!change) continue;
            to += put_varint(to, pass ? (uint64_t)(change > 0 ? 2 * change : -2 * change - 1) : (uint64_t)(name - before - 1));
            before = name;
        }
    }
    uint64_t mu;
    memcpy(&mu, &p->mu, 8);
    put_number(s, PRICES_EVENT, 1);
    put_number(s, (uint64_t)(uint16_t)(int16_t)(exponent - 1), 2);
    put_number(s, mu >> 32, 4);
    put_number(s, (uint64_t)(to - head - 11), 4);
    s->n_trail += (size_t)(to - head - 11);
    return 1;
}

static double round_to_close(Search *s, Prices *p) {
    /* Round the prices at hand so that they close the part, as roughly as they may; where none do, as finely as they may.
     * The bound at these prices, with what it is made of.
     */
    double value = 0.0;
    memcpy(p->fine_below, p->below, 8 * (size_t)p->n);
    memcpy(p->fine_above, p->above, 8 * (size_t)p->n);
    double mu = p->mu;
    for (int by = ROUGHEST; by > 0; by /= 2) {
        round_prices(p, p->fine_below, p->fine_above, mu, by);
        value = evaluate(s, p, NULL);
        if (misses(s, p, value)) break;
    }
    return value;
}
