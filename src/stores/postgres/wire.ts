import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { checkScram } from './dial.js'
import { checkMethod, LoginError, type LoginMethod, type LoginRules } from './login-methods.js'

/**
 * What the driver takes for its socket. It lets only whole messages through that the grammar allows, because the driver trusts whatever it
 * reads: others would end the process, keep it busy for ever or fill its memory. Any such message ends the connection.
 */
export class Wire extends Duplex {
  readonly #socket: Socket
  readonly #grammar: Grammar
  #pieces: Buffer[] = []
  #size = 0
  /** bytes until there is something to look at */
  #wanted = headSize

  constructor(socket: Socket, rules: LoginRules) {
    super()
    this.#grammar = new Grammar(rules)
    this.#socket = socket
    socket.on('data', (piece: Buffer) => this.#take(piece))
    socket.on('error', (error) => this.destroy(error))
    socket.on('close', () => this.destroy())
  }

  /** Has the server ask for the rows of a copy once. */
  expectCopy(): void {
    this.#grammar.expectCopy()
  }

  /** rows that the server has stored of the last copy, once it has said so */
  get copied(): number | undefined {
    return this.#grammar.copied
  }

  /** as the driver asks for it */
  get readyState(): string {
    return this.#socket.readyState
  }

  setKeepAlive(isOn: boolean, delay: number): void {
    this.#socket.setKeepAlive(isOn, delay)
  }

  override _read(): void {
    this.#socket.resume()
  }

  override _write(chunk: Buffer, _: unknown, done: () => void): void {
    this.#grammar.noteSent(chunk)
    if (this.#socket.write(chunk)) done()
    else this.#socket.once('drain', done)
  }

  override _final(done: () => void): void {
    this.#socket.end(done)
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#pieces = []
    this.#socket.destroy()
    done(error)
  }

  #take(piece: Buffer): void {
    if (this.destroyed) return
    this.#pieces.push(piece)
    this.#size += piece.length
    if (this.#size < this.#wanted) return
    const bytes = this.#pieces.length === 1 ? piece : Buffer.concat(this.#pieces, this.#size)
    try {
      const end = this.#pass(bytes)
      this.#pieces = end < bytes.length ? [bytes.subarray(end)] : []
      this.#size = bytes.length - end
    } catch (error) {
      this.destroy(error instanceof Error ? error : new Error(String(error)))
    }
  }

  /** Hands the whole messages on, and gives where they end. */
  #pass(bytes: Buffer): number {
    let from = 0
    let at = 0
    this.#wanted = headSize
    while (bytes.length - at >= headSize) {
      const length = this.#grammar.lengthOf(bytes[at] ?? 0, bytes.readUInt32BE(at + 1))
      if (bytes.length - at < length) {
        this.#wanted = length
        break
      }
      if (!this.#grammar.read(bytes.subarray(at, at + length))) {
        this.#hand(bytes.subarray(from, at))
        from = at + length
      }
      at += length
    }
    this.#hand(bytes.subarray(from, at))
    return at
  }

  #hand(messages: Buffer): void {
    if (messages.length > 0 && !this.push(messages)) this.#socket.pause()
  }
}

/** a letter, and a length */
const headSize = 5

/**
 * What a server may say, and when, of the part of the protocol that we use
 * (https://www.postgresql.org/docs/current/protocol-message-formats.html).
 */
export class Grammar {
  /** answers that are awaited, of which the first is to the login */
  #awaited = 1
  #isIn = false
  readonly #rules: LoginRules
  /** what we have sent to begin SCRAM */
  #nonce: string | undefined
  #login: 'begun' | 'scram' | 'challenged' | 'proven' | 'accepted' = 'begun'
  #mayCopy = false
  /** rows that the server has stored of the last copy */
  copied: number | undefined
  /** of the rows that are coming */
  #columns: number | undefined
  /** bytes of the rows of an answer */
  #bytes = 0

  constructor(rules: LoginRules) {
    this.#rules = rules
  }

  expectCopy(): void {
    this.#mayCopy = true
    this.copied = undefined
  }

  /** @param messages whole ones of ours */
  noteSent(messages: Buffer): void {
    if (this.#login === 'scram') this.#nonce ??= /n,,n=[^,]*,r=([^,]+)$/.exec(messages.toString('latin1'))?.[1]
    if (!this.#isIn) return
    for (let at = 0; at + 5 <= messages.length; at += 1 + messages.readUInt32BE(at + 1)) {
      if (messages[at] === letters.Q) this.#awaited += 1
    }
  }

  /** The bytes of a message that begins like this. Throws when it may not come, or is longer than it can be. */
  lengthOf(letter: number, length: number): number {
    if (!(this.#isIn ? answering : entering).has(letter)) throw new Error(noServer)
    const most = letter === letters.D ? mostBytes : this.#isIn ? mostTold : mostBefore
    if (length < 4 || length > most) throw new Error(length < 4 ? noServer : tooMuch)
    return length + 1
  }

  /** Looks at a whole message. False for one that nobody needs to hear; throws for one that may not come now. */
  read(message: Buffer): boolean {
    const letter = message[0] ?? 0
    if (letter === letters.S || letter === letters.A) return false
    if (asked.has(letter) && this.#awaited === 0) throw new Error(noServer)
    this.#readers[letter]?.(message)
    return true
  }

  readonly #readers: Record<number, (message: Buffer) => void> = {
    [letterOf('R')]: (message) => this.#readLogin(message),
    [letterOf('K')]: ({ length }) => check(length >= 13),
    [letterOf('T')]: (message) => {
      this.#columns = columnsOf(message)
    },
    [letterOf('D')]: (message) => {
      this.#bytes += message.length
      if (this.#bytes > mostBytes) throw new Error(tooMuch)
      check(this.#columns !== undefined && isRow(message, this.#columns))
    },
    [letterOf('C')]: (message) => {
      this.#columns = undefined
      const [, count] = /^COPY (\d+)\0$/.exec(message.toString('latin1', 5)) ?? []
      if (count !== undefined) this.copied = Number(count)
    },
    [letterOf('G')]: () => {
      check(this.#mayCopy)
      this.#mayCopy = false
    },
    [letterOf('Z')]: ({ length }) => {
      check(length === 6 && this.#login === 'accepted')
      this.#isIn = true
      this.#awaited -= 1
      this.#columns = undefined
      this.#bytes = 0
    },
  }

  /** One that asks for SCRAM has to prove that it knows the password as well. */
  #readLogin(message: Buffer): void {
    check(message.length >= 9)
    const kind = message.readUInt32BE(5)
    const next = steps[`${this.#login} ${kind}`]
    if (next === undefined)
      throw new LoginError(logins.has(kind) ? noServer : `it asks for a way to log in that is not known here (${kind})`)
    const method = this.#login === 'begun' ? methods[kind] : undefined
    if (method !== undefined) checkMethod(method, this.#rules)
    if (kind === 5) check(message.length === 13)
    if (kind === 10) check(message.includes('SCRAM-SHA-256\0'))
    if (kind === 11) checkScram(message.toString('latin1', 9), this.#nonce)
    this.#login = next
  }
}

/** By what was said before, and the kind of a message: 0 accepted, 3 a password, 5 its MD5, 10 to 12 SCRAM. */
const steps: Record<string, 'begun' | 'scram' | 'challenged' | 'proven' | 'accepted'> = {
  'begun 0': 'accepted',
  'begun 3': 'proven',
  'begun 5': 'proven',
  'begun 10': 'scram',
  'scram 11': 'challenged',
  'challenged 12': 'proven',
  'proven 0': 'accepted',
}
const logins = new Set([0, 3, 5, 10, 11, 12])
const methods: Record<number, LoginMethod> = { 0: 'none', 3: 'password', 5: 'md5', 10: 'scram-sha-256' }

function columnsOf(message: Buffer): number {
  check(message.length >= 7)
  const count = message.readUInt16BE(5)
  let at = 7
  for (let column = 0; column < count; column += 1) {
    const end = message.indexOf(0, at)
    check(end >= 0)
    at = end + 19
  }
  check(at === message.length)
  return count
}

function isRow(message: Buffer, columns: number): boolean {
  if (message.length < 7 || message.readUInt16BE(5) !== columns) return false
  let at = 7
  for (let column = 0; column < columns; column += 1) {
    if (at + 4 > message.length) return false
    const size = message.readInt32BE(at)
    if (size < -1) return false
    at += 4 + Math.max(0, size)
  }
  return at === message.length
}

function check(isRight: boolean): void {
  if (!isRight) throw new Error(noServer)
}

function letterOf(letter: string): number {
  return letter.charCodeAt(0)
}

const letters = { A: letterOf('A'), D: letterOf('D'), Q: letterOf('Q'), S: letterOf('S') }
const entering = new Set(Array.from('RENSKZ', letterOf))
const answering = new Set(Array.from('TDCZENSAIG', letterOf))
const asked = new Set(Array.from('TDCZIG', letterOf))

/** A string of JavaScript holds no more, and what we ask for is far less. */
const mostBytes = 2 ** 29
/** of anything that is no row */
const mostTold = 2 ** 24
const mostBefore = 2 ** 16

const noServer = 'what answers is no PostgreSQL server'
const tooMuch = 'it answers with more than can be read'
