import { spawn } from '@lydell/node-pty'

/** The token that every service of the checks accepts. */
export const token = 'a-token-that-is-long-enough'

/** A program on a console of Windows, and what the console shows. */
export class Console {
  #screen = ''
  #checkScreen = () => {}
  #pty
  #ended

  /**
   * @param windows where the files are, and how a program of Windows is started
   * @param node the path of Node on Windows
   */
  constructor(windows, node, args) {
    const [program, ...rest] = [...windows.command, node, ...args]
    const env = { ...windows.env, TERM: 'xterm', PLANTS_SERVE_TOKEN: token }
    this.#pty = spawn(program, rest, { cols: 120, rows: 30, cwd: windows.folder, env })
    this.#pty.onData((data) => {
      this.#screen += data
      this.#checkScreen()
    })
    this.#ended = new Promise((resolve) => this.#pty.onExit(({ exitCode }) => resolve(exitCode)))
  }

  type(keys) {
    this.#pty.write(keys)
  }

  async answer(question, keys) {
    await this.waitForMatch(RegExp(question))
    this.type(keys)
  }

  /** Waits for a match after that of the call before. */
  waitForMatch(pattern) {
    return waitWithLimit(`the console shows ${pattern}`, this, (resolve) => {
      this.#checkScreen = () => {
        const match = pattern.exec(this.#screen)
        if (!match) return
        this.#screen = this.#screen.slice(match.index + match[0].length)
        resolve(match)
      }
      this.#checkScreen()
    })
  }

  assertShows(text) {
    if (!this.#screen.includes(text))
      throw new Error(`The console does not show ${text}: ${this.lastText}`)
  }

  async waitForEnd(expectedCode) {
    const code = await waitWithLimit('the program ends', this, (resolve) =>
      this.#ended.then(resolve),
    )
    if (code !== expectedCode)
      throw new Error(`It ended with ${code}, not with ${expectedCode}: ${this.lastText}`)
  }

  kill() {
    this.#pty.kill()
  }

  get lastText() {
    return JSON.stringify(this.#screen.slice(-600))
  }
}

/** Waits for an event of a console, and kills its program after a minute. */
async function waitWithLimit(event, console, wait) {
  let timer
  const limit = new Promise((_, reject) => {
    timer = setTimeout(() => {
      console.kill()
      reject(new Error(`Not within a minute: ${event}: ${console.lastText}`))
    }, 60_000)
  })
  try {
    return await Promise.race([new Promise(wait), limit])
  } finally {
    clearTimeout(timer)
  }
}
