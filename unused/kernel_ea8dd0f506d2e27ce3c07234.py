"""A kernel that sateen generated; it may be deleted, and is then generated again."""
import numpy as np
from numba import njit
from numpy import ceil, exp, floor, inf, log, sqrt
from sateen.engine.runtime import as_bits, as_double, mixed
U = np.uint64
FAR = 1 << 62
OPTIONS = dict(nogil=True, cache=True, error_model='numpy', fastmath={'contract', 'nsz'})
from sateen_algebra import bit_switches, complement, contains, eventually, intersection, known_until, switches, union, until

@njit(**OPTIONS)
def holds_0(F, l, book, size, k, last, endless, hopeful, places, sets):
  n0 = bit_switches(places, book[:, 1], np.int64(0), size, sets[0])
  n1 = known_until(sets[0], n0, last, n0 % 2 == 1 if endless else not hopeful, sets[1])
  n2 = eventually(sets[1], n1, np.int64(0), (1 << (k + 1)), sets[2])
  n3 = complement(sets[2], n2, sets[3])
  n4 = eventually(sets[3], n3, np.int64(0), (2 << (k + 1)), sets[4])
  return 1 if contains(sets[4], n4, 0) else 0

@njit(**OPTIONS)
def verdict_0(F, l, book, size, time, places, sets):
  k = 55
  scale = 3.602879701896397e+16
  for i in range(size):
    places[i] = 2 * np.int64(book[i, 0] * scale)
  final = time > 3.0
  last = FAR if final else 2 * np.int64(time * scale) - 1
  hope = holds_0(F, l, book, size, k, last, final, np.bool_(True), places, sets)
  if hope == 2:
    return -2.0
  if hope == 0 or final:
    return 2.0 * hope - 1.0
  return 1.0 * holds_0(F, l, book, size, k, last, np.bool_(False), np.bool_(False), places, sets)

@njit(**OPTIONS)
def run(theta, items, seed, T, max_events, most, satisfied, undecided, fault):
  block = np.zeros(232)
  first = (64 - block.ctypes.data % 64) % 64 // 8
  R = block[first : first + 64].view(np.uint64)
  F = block[first + 64 :]
  row = np.zeros(16, np.int64)
  number = np.zeros(16, np.int64)
  start = np.zeros(16, np.int64)
  due = np.zeros(16, np.int64)
  room = 256
  book = np.empty((16, room, 2))
  size = np.zeros(16, np.int64)
  looked = np.zeros(16, np.int64)
  places = np.empty(room, np.int64)
  sets = np.empty((5, 1 * room + 2), np.int64)
  item = 0
  done_runs = 0
  it = 0
  events = 0
  live = 0
  nd = 1
  wake = 0
  while True:
    if nd > 0 or it >= wake:
      due_now = it >= wake
      for l in range(16):
        if F[l + 96] != 0.0 or (due_now and it >= due[l]):
          if F[l + 80] == 1.0:
            fired = it - start[l]
            time = F[l + 32]
            crowded = False
            final = crowded or time > T or fired >= max_events or time > 3.0 or time == inf
            worth = final or fired - looked[l] >= 250 + 48 * size[l]
            if worth:
              looked[l] = fired
            if F[l + 144] == 0.0 and worth:
              F[l + 144] = verdict_0(F, l, book[l], size[l], time, places, sets)
              if F[l + 144] == -2.0:
                fault[0] = row[l]
                fault[1] = number[l]
                return -1
            finished = F[l + 144] != 0.0
            expired = time > T
            exhausted = fired >= max_events and not expired
            if finished or expired or exhausted or crowded:
              reason = 2 if crowded else (1 if expired else 0)
              if F[l + 144] > 0.0:
                satisfied[0, row[l]] += 1
              elif F[l + 144] == 0.0:
                undecided[0, reason, row[l]] += 1
              events += fired if exhausted else fired - 1
              F[l + 80] = 0.0
              live -= 1
            else:
              if F[l + 144] != 0.0:
                F[l + 48] = 1.0
                F[l + 64] = inf
                due[l] = start[l] + max_events
              else:
                F[l + 64] = 3.0000000000000004
                if time < 2.5:
                  F[l + 64] = 2.5
                if time < 2.0:
                  F[l + 64] = 2.0
                if time < 1.5:
                  F[l + 64] = 1.5
                due[l] = start[l] + max_events
          if F[l + 80] == 0.0 and item < items.shape[0]:
            row[l] = item
            number[l] = items[item, 1] + done_runs
            z = mixed(mixed(mixed(seed) ^ U(items[item, 0])) ^ U(number[l]))
            R[l + 0] = mixed(z + U(0))
            R[l + 16] = mixed(z + U(1))
            R[l + 32] = mixed(z + U(2))
            R[l + 48] = mixed(z + U(3))
            k0 = theta[item, 0]
            F[l] = floor(5.0 + 0.5)
            F[l + 16] = k0
            F[l + 32] = 0.0
            F[l + 144] = 0.0
            F[l + 80] = 1.0
            live += 1
            start[l] = it
            due[l] = it + max_events
            F[l + 112] = (1.0 if (not (F[l] == 0.0)) else 0.0)
            size[l] = 0
            book[l, size[l], 0] = 0.0
            book[l, size[l], 1] = F[l + 112]
            size[l] += 1
            F[l + 48] = 0.0
            looked[l] = 0
            F[l + 64] = 1.5
            done_runs += 1
            if done_runs == items[item, 2]:
              item += 1
              done_runs = 0
          F[l + 96] = 0.0
      if due_now:
        wake = FAR
        for l in range(16):
          if F[l + 80] == 1.0:
            wake = min(wake, due[l])
      if live == 0:
        break
    nd = 0
    ng = 0
    for l in range(16):
      x0 = F[l]
      a0 = (F[l + 16] * x0)
      t = F[l + 32]
      a = R[l]; b = R[l + 16]; c = R[l + 32]; d = R[l + 48]
      q = a + d; w = ((q << U(23)) | (q >> U(41))) + a; z = b << U(17)
      c = c ^ a; d = d ^ b; b = b ^ c; a = a ^ d; c = c ^ z; d = (d << U(45)) | (d >> U(19))
      e = 2.0 - as_double((w >> U(12)) | U(0x3FF0000000000001))
      q = a + d; w = ((q << U(23)) | (q >> U(41))) + a; z = b << U(17)
      c = c ^ a; d = d ^ b; b = b ^ c; a = a ^ d; c = c ^ z; d = (d << U(45)) | (d >> U(19))
      pick = as_double((w >> U(12)) | U(0x3FF0000000000000)) - 1.0
      R[l] = a; R[l + 16] = b; R[l + 32] = c; R[l + 48] = d
      g = as_bits(e) - U(0x3FE6A09E667F3BCD)
      h = as_double(((g + U(1024 << 52)) >> U(52)) | U(0x4330000000000000)) - 4503599627371520.0
      f = as_double((g & U(0xFFFFFFFFFFFFF)) + U(0x3FE6A09E667F3BCD)) - 1.0
      f2 = f * f; f4 = f2 * f2; f8 = f4 * f4
      wait = -(f * ((((1.000000000000062 + -0.500000000001198 * f) + (0.3333333332698457 + -0.2499999995085953 * f) * f2) + ((0.20000001045829344 + -0.16666672812409963 * f) + (0.14285651893509305 + -0.12499653566468791 * f) * f2) * f4) + (((0.11112759669583894 + -0.10010018946333504 * f) + (0.09072809114387267 + -0.08181441802079185 * f) * f2) + ((0.07699483716663819 + -0.08244536646552593 * f) + (0.07920345037583254 + -0.03887367248535157 * f) * f2) * f4) * f8)) - h * 0.6931471805599453
      tn = t + wait / a0
      u = pick * a0
      dn = 1.0 if (tn > T) | (tn >= F[l + 64]) | ((F[l + 48] != 0.0)) else 0.0
      dn = dn * F[l + 80]
      F[l + 96] = dn
      nd += 1 if dn > 0.0 else 0
      F[l + 32] = tn
      y0 = x0 + -1.0
      F[l] = y0
      bits = (1.0 if (not (y0 == 0.0)) else 0.0)
      news = 1.0 if ((bits != F[l + 112])) & (tn <= 3.0) & (F[l + 80] != 0.0) else 0.0
      F[l + 128] = news
      F[l + 112] = bits
      ng += 1 if news > 0.0 else 0
    it += 1
    if ng > 0:
      for l in range(16):
        if F[l + 128] != 0.0:
          if size[l] == room:
            room *= 2
            grown = np.empty((16, room, 2))
            for lane in range(16):
              for entry in range(room // 2):
                for column in range(2):
                  grown[lane, entry, column] = book[lane, entry, column]
            book = grown
            places = np.empty(room, np.int64)
            sets = np.empty((5, 1 * room + 2), np.int64)
          book[l, size[l], 0] = F[l + 32]
          book[l, size[l], 1] = F[l + 112]
          size[l] += 1
          ng -= 1
          if ng == 0:
            break
  return events
