// The language, in both forms: programs and what they return.

import { describe, expect, test } from 'vitest';
import { Environment } from './environment.ts';
import { LuaSyntaxError } from './lexer.ts';
import { tostring } from './lib/base.ts';
import { scriptLimits } from './script-state.ts';
import { Program } from './program.ts';
import { LuaError, listOf, NeedsSteps, Pending, ScriptAbort } from './values.ts';

const limits = { ...scriptLimits, stepBudget: 50 };

/** Result of a program as text; an error as `error: …`. */
function run(source: string, isStepping: boolean): string {
  const environment = new Environment({ isStepping, limits });
  environment.begin(0.5);
  const { machine } = environment;
  const shown = (value: unknown): string => String(tostring(machine, value));
  try {
    let result = environment.main(new Program(source, 'test'))();
    if (result instanceof Pending) {
      const steps = result;
      let step = steps.next();
      while (step.done !== true) step = steps.next();
      result = step.value;
    }
    return listOf(result).map(shown).join(' ');
  } catch (error) {
    if (error instanceof LuaError) return `error: ${shown(error.value)}`;
    if (error instanceof LuaSyntaxError) return `syntax: ${error.message}`;
    if (error instanceof NeedsSteps) return `needs steps: ${error.reason}`;
    if (error instanceof ScriptAbort) return `abort: ${error.message}`;
    throw error;
  }
}

const programs: readonly (readonly [source: string, result: string])[] = [
  ['return 1 + 2 * 3 ^ 2, 7 % 3, -7 % 3, 7 % -3, 5.5 % 2', '19 1 2 -2 1.5'],
  [
    'return 2^53, 1e15, 1/3, 1e100, -0.0, 1/0, 0x10',
    '9.007199254741e+15 1e+15 0.33333333333333 1e+100 -0 inf 16',
  ],
  ['return "10" + 5, "3" * "4", 10 .. 20, -"2"', '15 12 1020 -2'],
  ['return 1 == 1.0, "1" == 1, nil == false, {} == {}', 'true false false false'],
  [
    'return 1 < 2, "a" < "b", "a" < "B", "" < "a", 2 >= 2, "b" > "a"',
    'true true false true true true',
  ],
  ['return nil and 1, false or nil, 1 and 2, nil or "x", not nil, not 0', 'nil nil 2 x true false'],
  ['for k in\n3\ndo\nend', 'error: test:2: attempt to call a number value'],
  ['return collectgarbage(), collectgarbage("stop"), collectgarbage("step", 1)', '0 0 true'],
  [
    'return collectgarbage("nooption")',
    "error: test:1: bad argument #1 to 'collectgarbage' (invalid option 'nooption')",
  ],
  [
    'return collectgarbage({})',
    "error: test:1: bad argument #1 to 'collectgarbage' (string expected, got table)",
  ],
  ['return #"abc", #{1,2,3}, #{n=1}, #{1,2,nil}', '3 3 0 2'],
  ['local a, b, c = (function() return 1, 2, 3 end)() return c, b, a', '3 2 1'],
  ['local a, b = ((function() return 1, 2 end)()) return a, b', '1 nil'],
  ['local function f(...) return select("#", ...), ... end return f(nil, 2, nil)', '3 nil 2 nil'],
  [
    'local function f(...) local a, b = ... return {...}, a, b end local t, a, b = f(4, 5, 6) return #t, a, b',
    '3 4 5',
  ],
  [
    'local t = {f(), 1} ',
    "error: test:1: Script attempted to access nonexistent global variable 'f'",
  ],
  ['local t = {10, 20, x = 1, [3] = 30, "z"} return t[1], t[2], t[3], t.x', '10 20 z 1'],
  ['local s = 0 for i = 1, 10 do s = s + i end for i = 10, 1, -3 do s = s + i end return s', '77'],
  [
    'local s = "" for i = 3, 1 do s = s .. i end for i = 1, 2, 0.5 do s = s .. i .. " " end return s',
    '1 1.5 2 ',
  ],
  ['local t, s = {5, 6, nil, 8}, "" for i, v in ipairs(t) do s = s .. i .. v end return s', '1526'],
  [
    'local t, n = {1, 2, 3, a = 1, b = 2}, 0 for k, v in pairs(t) do t[k] = nil n = n + v end return n, next(t)',
    '9 nil',
  ],
  [
    'local f = {} for i = 1, 3 do f[i] = function() i = i + 1 return i end end return f[1](), f[1](), f[2]()',
    '2 3 3',
  ],
  ['local i = 1 while true do i = i * 2 if i > 100 then break end end return i', '128'],
  ['local i = 0 repeat local j = i i = i + 1 until j == 5 return i', '6'],
  ['local x = 1 do local x = 2 end local x = x + 1 return x', '2'],
  ['local a, b = 1, 2 a, b = b, a return a, b', '2 1'],
  ['local t = {1, 2} local i = 1 i, t[i] = i + 1, 20 return i, t[1], t[2]', '2 20 2'],
  ['local t = {} t.a, t.b = (function() return 1, 2 end)() return t.a, t.b', '1 2'],
  [
    'local function fact(n) if n < 2 then return 1 end return n * fact(n - 1) end return fact(20)',
    '2.4329020081766e+18',
  ],
  ['local t = {} function t.a.b() end', "error: test:1: attempt to index field 'a' (a nil value)"],
  ['local t = {v = 5} function t:get(n) return self.v + n end return t:get(2), t.get(t, 1)', '7 6'],
  ['return ("x"):rep(3), ("%d"):format(3.7), ("abc"):upper():lower():len()', 'xxx 3 3'],
  ['return "a\\65\\n\\"" , [[\nx]], [==[a]]b]==], "\\x"', 'aA\n" x a]]b x'],
  ['-- c\n--[[ long\n ]] return 1 --[==[ x ]==]', '1'],
  // Properties of JavaScript objects are no fields.
  [
    'local t = {} t.__proto__ = 1 t.constructor = 2 return t.__proto__, t.constructor, t.toString, ({}).hasOwnProperty',
    '1 2 nil nil',
  ],
  ['return ("x").constructor, ("x").length, ("x").__proto__', 'nil nil nil'],
  ['return rawget(_G, "constructor"), rawget(string, "__proto__")', 'nil nil'],
  // Metatables.
  [
    'local m = {__index = function(t, k) return k .. "!" end} return setmetatable({}, m).foo',
    'foo!',
  ],
  [
    'local a = setmetatable({}, {__index = {x = 1}}) local b = setmetatable({}, {__index = a}) return b.x, b.y',
    '1 nil',
  ],
  [
    'local log = "" local t = setmetatable({}, {__newindex = function(t, k, v) rawset(t, k, v * 2) end}) t.a = 2 t.a = 3 return t.a',
    '3',
  ],
  [
    'local v = {} local m = {__add = function(a, b) return "add" end, __concat = function() return "cat" end, __unm = function() return "unm" end, __eq = function() return true end, __lt = function() return true end, __le = function() return false end, __call = function(self, x) return x end, __tostring = function() return "shown" end} local a, b = setmetatable({}, m), setmetatable({}, m) return a + 1, 1 + a, a .. "x", -a, a == b, a < b, a <= b, a ~= b, a(7), tostring(a)',
    'add add cat unm true true false false 7 shown',
  ],
  [
    'local m = {__lt = function(a, b) return a.v < b.v end} local a, b = setmetatable({v=1}, m), setmetatable({v=2}, m) return a <= b, b <= a, a > b',
    'true false false',
  ],
  [
    'return getmetatable(setmetatable({}, {__metatable = "locked"})), pcall(setmetatable, setmetatable({}, {__metatable = 1}), {})',
    'locked false cannot change a protected metatable',
  ],
  [
    'local t = setmetatable({}, {}) getmetatable(t).__index = t return pcall(function() return t.x end)',
    'false test:1: loop in gettable',
  ],
  // Errors.
  ['return pcall(error, "x"), pcall(error)', 'false false nil'],
  ['return select(2, pcall(error, "x", 0)), select(2, pcall(error, 5, 0))', 'x 5'],
  [
    'return pcall(function() local x = nil; x.y = 1 end)',
    "false test:1: attempt to index local 'x' (a nil value)",
  ],
  [
    'return pcall(function() return 1 + {} end)',
    'false test:1: attempt to perform arithmetic on a table value',
  ],
  [
    'local t = {} return pcall(function() return t.x.y.z end)',
    "false test:1: attempt to index field 'x' (a nil value)",
  ],
  [
    'return pcall(function() return "a" < 1 end)',
    'false test:1: attempt to compare string with number',
  ],
  [
    'return pcall(function() return {} < {} end)',
    'false test:1: attempt to compare two table values',
  ],
  [
    'return pcall(function() return "a" .. {} end)',
    'false test:1: attempt to concatenate a table value',
  ],
  [
    'local s = "x" return pcall(function() return s:nope() end)',
    "false test:1: attempt to call method 'nope' (a nil value)",
  ],
  ['return xpcall(function() error("a", 0) end, function(e) return e .. "!" end)', 'false a!'],
  ['local ok, e = pcall(function() error({code = 5}) end) return ok, e.code', 'false 5'],
  [
    'local function f() return f() + 1 end local ok, e = pcall(f) return ok, e:match("stack overflow")',
    'false stack overflow',
  ],
  [
    'local t = setmetatable({}, {__index = function(t, k) return t[k + 1] end}) local ok, e = pcall(function() return t[1] end) return ok, e:match("stack overflow")',
    'false stack overflow',
  ],
  ['x = 1', 'error: test:1: Attempt to modify a readonly table'],
  ['string.foo = 1', 'error: test:1: Attempt to modify a readonly table'],
  ['table.insert(math, 1)', 'error: test:1: Attempt to modify a readonly table'],
  [
    'return loadfile, dofile',
    "error: test:1: Script attempted to access nonexistent global variable 'loadfile'",
  ],
  [
    'return tostring(nil), tostring(1e15), tostring(-0.1), type(print == nil)',
    "error: test:1: Script attempted to access nonexistent global variable 'print'",
  ],
  // Syntax errors.
  ['if x', "syntax: test:1: 'then' expected near '<eof>'"],
  ['return 1 2', "syntax: test:1: '<eof>' expected near '2'"],
  ['x = "abc', "syntax: test:1: unfinished string near '\"abc'".replace('"abc', '<eof>')],
  ['for i = 1 do end', "syntax: test:1: ',' expected near 'do'"],
  [
    'if true then\n\nreturn 1',
    "syntax: test:3: 'end' expected (to close 'if' at line 1) near '<eof>'",
  ],
  ['break', "syntax: test:1: no loop to break near '<eof>'"],
  ['local x = 3x', "syntax: test:1: malformed number near '3x'"],
  ['f()\n(g)()', "syntax: test:2: ambiguous syntax (function call x new statement) near '('"],
  [
    `return ${'('.repeat(300)}1${')'.repeat(300)}`,
    'syntax: test:1: chunk has too many syntax levels',
  ],
  // Libraries.
  [
    'return ("hello world"):find("o w"), ("hello"):find("l+"), ("a.b"):find(".", 1, true), ("abc"):find("b", -1)',
    '5 3 2 nil',
  ],
  ['return ("key = value"):match("^(%w+)%s*=%s*(%w+)$")', 'key value'],
  [
    'return ("abc"):gsub("%w", "%0%0"), ("abc"):gsub("", "-"), ("hello"):gsub("l", {l = "L"}), ("x y"):gsub("%a", function(c) return c:upper() end)',
    'aabbcc -a-b-c- heLLo X Y 2',
  ],
  [
    'local t = {} for k, v in ("a=1, b=2"):gmatch("(%w+)=(%w+)") do t[#t + 1] = k .. v end return table.concat(t, ";")',
    'a1;b2',
  ],
  [
    'return ("THE (quick) fox"):find("%((%a+)%)"), ("[[x]]"):match("%b[]"), ("THE"):gsub("%f[%w]%w", "x")',
    '5 [[x]] xHE 1',
  ],
  [
    'return ("abc"):byte(1, -1), ("abc"):sub(-2), ("abc"):sub(2, 10), ("abc"):reverse(), string.char(65, 66)',
    '97 bc bc cba AB',
  ],
  [
    'return string.format("%5d|%-5s|%05.1f|%x|%g|%q|%c|%%", 42, "a", 3.14159, 255, 1e20, "a\\nb", 65)',
    '   42|a    |003.1|ff|1e+20|"a\\\nb"|A|%',
  ],
  [
    'return string.format("%s %s %10.4s|", nil, true, "abcdefgh"), string.format("%i", 2^31)',
    'nil true       abcd| 2147483648',
  ],
  [
    'local t = {3, 1, 2} table.sort(t) local u = {3, 1, 2} table.sort(u, function(a, b) return a > b end) return table.concat(t), table.concat(u)',
    '123 321',
  ],
  [
    'local t = {1, 2, 3} table.insert(t, 4) table.insert(t, 1, 0) local x = table.remove(t, 2) return x, table.remove(t), table.concat(t, ","), table.maxn({[10] = 1})',
    '1 4 0,2,3 10',
  ],
  ['return unpack({1, 2, 3}, 2), select(-1, 1, 2, 3), select("#")', '2 3 0'],
  [
    'return math.floor(-1.5), math.max(1, 5, 3), math.fmod(-7, 3), math.modf(3.7), math.huge, math.abs(-2)',
    '-2 5 -1 3 inf 2',
  ],
  [
    'return tonumber("0x1F"), tonumber("  12  "), tonumber("1e1"), tonumber("abc"), tonumber("ff", 16), tonumber("8", 8), tonumber("")',
    '31 12 10 nil 255 nil nil',
  ],
  ['return pcall(string.rep, "x", 1e10)', 'false not enough memory'],
  ['return pcall(unpack, {}, 1, 1e6)', 'false too many results to unpack'],
  ['return loadstring("return ...", "=x")(1, 2)', '1 2'],
  ['return loadstring("x x")', "nil [string \"x x\"]:1: '=' expected near 'x'"],
];

describe.each([
  ['plain', false],
  ['stepping', true],
] as const)('%s form', (_name, isStepping) => {
  test.each(programs)('%s', (source, result) => {
    expect(run(source, isStepping)).toBe(result);
  });
});

const coroutines: readonly (readonly [source: string, result: string])[] = [
  [
    'local co = coroutine.create(function(a, b) local c = coroutine.yield(a + b) return c * 2 end) local _, x = coroutine.resume(co, 1, 2) local _, y = coroutine.resume(co, 10) return x, y, coroutine.status(co), coroutine.resume(co)',
    '3 20 dead false cannot resume dead coroutine',
  ],
  [
    'local gen = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) local s = 0 for v in gen do s = s + v end return s',
    '6',
  ],
  [
    'local co = coroutine.wrap(function() return pcall(function() coroutine.yield(1) error("x", 0) end) end) return co(), co()',
    '1 false x',
  ],
  [
    'local co = coroutine.create(function() error("x", 0) end) return coroutine.resume(co)',
    'false x',
  ],
  [
    'return coroutine.running(), pcall(coroutine.yield, 1)',
    'nil false attempt to yield across metamethod/C-call boundary',
  ],
  [
    'local co = coroutine.wrap(function() table.sort({3, 1, 2}, function(a, b) coroutine.yield(a) return a < b end) return "end" end) co() return type(co())',
    'number',
  ],
];

test.each(coroutines)('coroutines: %s', (source, result) => {
  expect(run(source, true)).toBe(result);
});

test('a plain script that makes a coroutine asks for the stepping form', () => {
  expect(run('coroutine.wrap(function() end)', false)).toBe('needs steps: coroutine');
});

test('a loop that does not end yields in the stepping form, and asks for it in the plain one', () => {
  expect(run('while true do end', false)).toBe('needs steps: budget');
  const environment = new Environment({ isStepping: true, limits });
  environment.begin(0.5);
  const steps = environment.main(new Program('while true do end', 'test'))();
  if (!(steps instanceof Pending)) throw new TypeError('no steps');
  for (let i = 0; i < 100; i++) expect(steps.next().done).toBe(false);
  environment.machine.abort = new ScriptAbort('killed');
  expect(() => steps.next()).toThrow();
});

test.each([
  'while true do pcall(function() while true do end end) end',
  'local t = setmetatable({}, {__index = function() while true do end end}) return t.x',
  'table.sort({2, 1}, function() while true do end end)',
  'string.gsub("x", "x", function() while true do end end)',
  'local f f = function() return pcall(f) end while true do f() end',
  'return ("a"):rep(100000):find(("a?"):rep(1000) .. "b")',
  'local s = "x" while true do s = s:rep(2):sub(1, 1000) end',
  'while true do loadstring("return 1") end',
])('no program keeps the thread: %s', (source) => {
  const environment = new Environment({ isStepping: true, limits });
  environment.begin(0.5);
  const steps = environment.main(new Program(source, 'test'))();
  if (!(steps instanceof Pending)) throw new TypeError('no steps');
  try {
    for (let i = 0; i < 20; i++) if (steps.next().done === true) return;
  } catch (error) {
    expect(error).toBeInstanceOf(LuaError);
  }
});
