import { join } from 'node:path'
import { spawn } from '@lydell/node-pty'
import { bin, withoutCache } from './process.js'
import { checkSecretsOf } from './secrets.js'

export interface Terminal {
  /** all that the program has written so far */
  readonly screen: string
  type(text: string): void
  /** resolves when the screen holds the text, behind what the last call waited for */
  see(text: string): Promise<void>
  /** waits for each question in turn, and types its answer */
  answer(...answers: [question: string, text: string][]): Promise<void>
  kill(signal: string): void
  /** the exit code, and everything that was on the screen */
  ended: Promise<{ code: number; screen: string }>
}

/** Runs the program on a real terminal. */
export function terminal(
  args: string[],
  folder: string,
  env: Record<string, string> = {},
  columns = 80,
): Terminal {
  const own = { HOME: folder, PAGER: 'cat', PLANTS_DATA_DIR: join(folder, 'data') }
  return terminalFor(bin, args, folder, { ...own, ...withoutCache, ...env }, columns)
}

/** Runs another program, such as a shell, on a real terminal. */
export function terminalFor(
  program: string,
  args: string[],
  folder: string,
  env: Record<string, string>,
  columns = 160,
): Terminal {
  const name = 'xterm-256color'
  const pty = spawn(program, args, {
    ...{ name, cols: columns, rows: 24, cwd: folder },
    env: { PATH: process.env['PATH'] ?? '', TERM: name, ...env },
  })
  let screen = ''
  let seen = 0
  let look = () => {}
  pty.onData((data) => {
    screen += data
    look()
  })
  const ended = new Promise<{ code: number; screen: string }>((resolve) => {
    pty.onExit(({ exitCode, signal }) =>
      resolve({ code: signal ? 128 + signal : exitCode, screen }),
    )
  })
  // A service that starts on a terminal shows the token that it makes.
  if (args[0] !== 'serve') checkSecretsOf(ended.then(() => ({ argv: args, out: screen })))
  const see = (text: string) =>
    new Promise<void>((resolve, reject) => {
      look = () => {
        const at = screen.indexOf(text, seen)
        if (at < 0) return
        seen = at + text.length
        resolve()
      }
      look()
      void ended.then(() =>
        reject(new Error(`The program ended without showing ${JSON.stringify(text)}:\n${screen}`)),
      )
    })
  return {
    get screen() {
      return screen
    },
    type: (text) => pty.write(text),
    see,
    answer: async (...answers) => {
      for (const [question, text] of answers) {
        await see(question)
        pty.write(text)
      }
    },
    kill: (signal) => pty.kill(signal),
    ended,
  }
}
